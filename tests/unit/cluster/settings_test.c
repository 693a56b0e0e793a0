/* SPDX-License-Identifier: MIT
 *
 * What a person changes in a running job: bounds, numbers, the coordinator's part, and requests.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cluster/requests.h"
#include "support/lab.h"

static void test_bounds(void **state)
{
    char longer[CLUSTER_SETTING_TEXT + 1] = "";
    json_t *values = json_pack("{s:s, s:s}", "k", "4", "consistency", "asp");

    (void)state;
    memset(longer, 'x', CLUSTER_SETTING_TEXT);
    assert_int_equal(cluster_settings_check(values), BASE_OK);
    assert_int_equal(cluster_settings_check(NULL), BASE_ERR_DATA);
    json_object_set_new(values, "k", json_integer(4));
    assert_int_equal(cluster_settings_check(values), BASE_ERR_DATA);
    json_object_set_new(values, "k", json_string(longer));
    assert_int_equal(cluster_settings_check(values), BASE_ERR_DATA);
    json_object_set_new(values, "k", json_stringn("a\0b", 3));
    assert_int_equal(cluster_settings_check(values), BASE_ERR_DATA);
    json_object_del(values, "k");
    assert_int_equal(cluster_settings_check(values), BASE_OK);
    json_object_set_new(values, longer, json_string("4"));
    assert_int_equal(cluster_settings_check(values), BASE_ERR_DATA);
    json_object_clear(values);
    for (int i = 0; i <= CLUSTER_MAX_SETTINGS; i++) {
        char name[8] = {(char)('a' + i / 26), (char)('a' + i % 26)};

        assert_int_equal(cluster_settings_check(values), BASE_OK);
        json_object_set_new(values, name, json_string("1"));
    }
    assert_int_equal(cluster_settings_check(values), BASE_ERR_DATA);
    json_decref(values);
}

static void test_newest(void **state)
{
    struct cluster_settings s = {0};
    json_t *one = json_pack("{s:s}", "k", "1"), *two = json_pack("{s:s}", "k", "2");

    (void)state;
    assert_true(cluster_settings_take(&s, 2, two));
    assert_false(cluster_settings_take(&s, 2, one));
    assert_false(cluster_settings_take(&s, 1, one));
    assert_true(s.number == 2 && s.values == two);
    cluster_settings_fini(&s);
    assert_true(s.number == 0 && s.values == NULL);
    json_decref(one);
    json_decref(two);
}

/* Takes "k" alone, and of that no "0". */
static base_status only_k(const json_t *job, const json_t *settings)
{
    const char *k = json_string_value(json_object_get(settings, "k"));

    assert_int_equal(json_integer_value(json_object_get(job, "bytes")), 8);
    if (k == NULL || json_object_size(settings) != 1 || strcmp(k, "0") == 0)
        return base_fail(BASE_ERR_USAGE, "not so");
    return BASE_OK;
}

static void refuse(const char *name, const char *value, const char *words)
{
    uint32_t number = 7;

    assert_int_equal(cluster_coordinator_set(lab.c, name, value, lab.now, &number), BASE_ERR_USAGE);
    assert_int_equal(number, 0);
    if (strstr(base_message(), words) == NULL)
        fail_msg("'%s' does not say '%s'", base_message(), words);
    lab_collect();
}

static void test_coordinator(void **state)
{
    struct cluster_message m;
    uint32_t first, second;
    char longer[CLUSTER_SETTING_TEXT + 1] = "";

    (void)state;
    lab.check = only_k;
    lab_begin(2, 1, true);
    refuse("k", "1", "has not begun yet");
    lab_finish(state);
    lab.check = only_k;
    lab_two_hosts(1, true);
    refuse("k", "0", "not so");
    refuse("j", "1", "not so");
    memset(longer, 'x', CLUSTER_SETTING_TEXT);
    refuse("k", longer, "cannot be set");
    assert_int_equal(lab_said(CLUSTER_SETTINGS, -1, NULL), 0);
    assert_int_equal(cluster_coordinator_set(lab.c, "k", "1", lab.now, &first), BASE_OK);
    assert_int_equal(cluster_coordinator_set(lab.c, "k", "2", lab.now, &second), BASE_OK);
    lab_collect();
    assert_true(first == 1 && second == 2);
    assert_int_equal(lab_said(CLUSTER_SETTINGS, 0, NULL), 2);
    assert_int_equal(lab_said(CLUSTER_SETTINGS, 1, &m), 2);
    assert_int_equal(m.serial, 2);
    /* A worker that has the second change has the first, too. */
    assert_int_equal(cluster_coordinator_holds_from(lab.c, first), -1);
    lab_tell(0, (struct cluster_message){
                    .type = CLUSTER_APPLIED, .id = 1, .serial = second, .step = 40});
    lab_tell(0,
             (struct cluster_message){.type = CLUSTER_APPLIED, .id = 1, .serial = 1, .step = 50});
    assert_int_equal(cluster_coordinator_holds_from(lab.c, first), 40);
    assert_int_equal(cluster_coordinator_holds_from(lab.c, second), 40);
    assert_int_equal(cluster_coordinator_holds_from(lab.c, second + 1), -1);
    /* Hosts that join get it with their job. */
    lab_join(2, CLUSTER_ANY_HOST, 1);
    assert_int_equal(lab_said(CLUSTER_SETTINGS, 2, &m), 1);
    assert_int_equal(m.serial, 2);
    lab_tell(0, (struct cluster_message){.type = CLUSTER_STOP});
    refuse("k", "3", "is ending");
}

static void test_no_settings(void **state)
{
    (void)state;
    lab_two_hosts(1, false);
    refuse("k", "1", "a job of `ping` has no settings");
}

static void test_requests(void **state)
{
    static const struct {
        const char *text;
        bool good;
    } requests[] = {
        {"{\"ask\":\"status\"}", true},
        {"{\"ask\":\"set\",\"name\":\"k\",\"value\":\"4\"}", true},
        {"{\"ask\":\"status\",\"name\":\"k\"}", false},
        {"{\"ask\":\"set\",\"name\":\"k\",\"value\":4}", false},
        {"{\"ask\":\"set\",\"name\":\"k\"}", false},
        {"{\"ask\":\"set\",\"name\":\"k\",\"value\":\"4\",\"more\":1}", false},
        {"{\"ask\":\"rm\"}", false},
        {"{}", false},
    };
    struct cluster_request r;

    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        json_t *object;

        assert_int_equal(base_json_parse(requests[i].text, strlen(requests[i].text), &object),
                         BASE_OK);
        if ((cluster_request_read(object, &r) == BASE_OK) != requests[i].good)
            fail_msg("%s", requests[i].text);
        if (i == 1) {
            assert_true(r.sets);
            assert_string_equal(r.name, "k");
            assert_string_equal(r.value, "4");
        }
        json_decref(object);
    }
    assert_int_equal(cluster_request_read(NULL, &r), BASE_ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_newest),
        cmocka_unit_test_teardown(test_coordinator, lab_finish),
        cmocka_unit_test_teardown(test_no_settings, lab_finish),
        cmocka_unit_test(test_requests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
