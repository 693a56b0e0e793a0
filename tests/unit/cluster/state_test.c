/* SPDX-License-Identifier: MIT
 *
 * A coordinator's state and a host's report: there and back; each field missing, of the wrong type,
 * out of its bounds, or one too many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cluster/report.h"
#include "cluster/state.h"

static struct cluster_state state, back;
static struct cluster_report report, read_back;

static json_t *full_state(void)
{
    json_t *json;

    state = (struct cluster_state){
        .term = 2,
        .serial = 77,
        .name = "8f2e",
        .program = "train",
        .job = json_pack("{s:i}", "batch", 32),
        .first_hosts = 3,
        .of_each = 2,
        .asked = 1,
        .least = 1,
        .min_workers = 1,
        .joins = true,
        .folder = true,
        .silence = 10,
        .gather = 120,
        .going_on = true,
        .last_id = 9,
        .leader = 1,
        .finished = 1,
        .done = 2,
        .done_view = 3,
        .result_id = 4,
        .result = json_pack("{s:i}", "steps", 12),
        .settings = {1000002, json_pack("{s:s}", "k", "4")},
        .view = {.number = 3,
                 .size = 2,
                 .members = {{.id = 3, .host = 1, .port = 99, .address = "10.0.0.2"},
                             {.id = 4, .host = 2, .port = 98, .address = "10.0.0.3"}}},
        .quorum = {true, true, true},
        .host_count = 3,
        .hosts = {{.name = "gone"},
                  {.here = true, .port = 7, .workers = 2, .name = "b", .address = "10.0.0.2"},
                  {.here = true, .port = 8, .workers = 2, .name = "c", .address = "10.0.0.3"}},
    };
    json = cluster_state_to_json(&state);
    cluster_state_fini(&state);
    return json;
}

static void refuse_state(json_t *json)
{
    assert_int_equal(cluster_state_from_json(json, &back), BASE_ERR_DATA);
    assert_true(back.job == NULL && back.result == NULL && back.host_count == 0);
    json_decref(json);
}

static void test_state(void **unused)
{
    json_t *json = full_state(), *again;

    (void)unused;
    assert_int_equal(cluster_state_from_json(json, &back), BASE_OK);
    assert_true(back.term == 2 && back.serial == 77 && back.done == 2 && back.leader == 1);
    assert_true(back.quorum[0] && back.quorum[2] && !back.hosts[0].here && back.hosts[2].port == 8);
    assert_int_equal(back.settings.number, 1000002);
    assert_string_equal(json_string_value(json_object_get(back.settings.values, "k")), "4");
    assert_true(cluster_state_in_view(&back, 2) && !cluster_state_in_view(&back, 0));
    assert_true(cluster_state_newer(&back, 2, 76) && cluster_state_newer(&back, 1, 99));
    assert_false(cluster_state_newer(&back, 2, 77) || cluster_state_newer(&back, 3, 1));
    again = cluster_state_to_json(&back);
    assert_true(json_equal(json, again));
    json_decref(again);
    json_decref(json);
    cluster_state_fini(&back);
}

static void test_state_fields(void **unused)
{
    json_t *json = full_state(), *bad, *value;
    const char *key;

    (void)unused;
    json_object_foreach(json, key, value)
    {
        bad = json_deep_copy(json);
        json_object_del(bad, key);
        refuse_state(bad);
        bad = json_deep_copy(json);
        json_object_set_new(bad, key, json_pack("[{}]"));
        refuse_state(bad);
        if (json_is_integer(value)) {
            bad = json_deep_copy(json);
            json_object_set_new(bad, key, json_integer(-1));
            refuse_state(bad);
            bad = json_deep_copy(json);
            json_object_set_new(bad, key, json_integer(INT64_MAX));
            refuse_state(bad);
        }
    }
    bad = json_deep_copy(json);
    json_object_set_new(bad, "more", json_integer(1));
    refuse_state(bad);
    json_decref(json);
}

static void test_state_nonsense(void **unused)
{
    json_t *json = full_state();
    static const char *const lists[][2] = {
        {"done", "[3, 3]"},
        {"done", "[9]"},
        {"done", "[0]"},
        {"done", "[\"x\"]"},
        {"quorum", "[0, 0]"},
        {"quorum", "[3]"},
        {"quorum", "[-1]"},
        {"quorum", "[null]"},
        {"hosts", "[]"},
        {"silence", "0.0"},
        {"gather", "1e9"},
        {"result", "[]"},
        {"name", "\"0123456789012345678901234567890123456789\""},
        {"view", "{\"number\": 0, \"members\": []}"},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        json_t *bad = json_deep_copy(json);

        json_object_set_new(bad, lists[i][0], json_loads(lists[i][1], JSON_DECODE_ANY, NULL));
        refuse_state(bad);
    }
    json_object_set_new(json_array_get(json_object_get(json, "hosts"), 1), "address",
                        json_string("a name"));
    refuse_state(json);
    refuse_state(json_array());
}

static json_t *full_report(void)
{
    json_t *json;

    report = (struct cluster_report){
        .count = 2,
        .workers = {{.id = 3, .view = 2, .pid = 77, .slot = 1, .port = 99, .live = true},
                    {.id = 2, .view = 2, .done = true}},
        .result_id = 2,
        .result = json_pack("{s:i}", "steps", 12)};
    json = cluster_report_to_json(&report);
    cluster_report_fini(&report);
    return json;
}

static void refuse_report(json_t *json)
{
    assert_int_equal(cluster_report_from_json(json, &read_back), BASE_ERR_DATA);
    assert_true(read_back.count == 0 && read_back.result == NULL);
    json_decref(json);
}

static json_t *worker_of(json_t *json, size_t index)
{
    return json_array_get(json_object_get(json, "workers"), index);
}

static void test_report(void **unused)
{
    json_t *json = full_report(), *bad, *value, *again;
    const char *key;

    (void)unused;
    assert_int_equal(cluster_report_from_json(json, &read_back), BASE_OK);
    assert_true(read_back.count == 2 && read_back.workers[0].port == 99 &&
                read_back.result_id == 2);
    again = cluster_report_to_json(&read_back);
    assert_true(json_equal(json, again));
    json_decref(again);
    cluster_report_fini(&read_back);
    json_object_foreach(json, key, value)
    {
        bad = json_deep_copy(json);
        json_object_del(bad, key);
        refuse_report(bad);
        bad = json_deep_copy(json);
        json_object_set_new(bad, key, json_true());
        refuse_report(bad);
    }
    json_object_foreach(worker_of(json, 0), key, value)
    {
        bad = json_deep_copy(json);
        json_object_del(worker_of(bad, 0), key);
        refuse_report(bad);
        bad = json_deep_copy(json);
        json_object_set_new(worker_of(bad, 0), key, json_string("x"));
        refuse_report(bad);
    }
    json_decref(json);
}

static void test_report_nonsense(void **unused)
{
    json_t *json = full_report(), *bad = json_deep_copy(json);

    (void)unused;
    json_object_set_new(worker_of(bad, 1), "id", json_integer(3)); /* twice */
    refuse_report(bad);
    bad = json_deep_copy(json);
    json_object_set_new(worker_of(bad, 0), "slot", json_integer(COMM_MAX_WORKERS));
    refuse_report(bad);
    bad = json_deep_copy(json);
    json_object_set_new(worker_of(bad, 0), "more", json_integer(1));
    refuse_report(bad);
    bad = json_deep_copy(json);
    json_object_set_new(bad, "more", json_integer(1));
    refuse_report(bad);
    bad = json_deep_copy(json);
    for (int i = 0; i < CLUSTER_MAX_REPORTED; i++) {
        json_t *one = json_deep_copy(worker_of(json, 1));

        json_object_set_new(one, "id", json_integer(100 + i));
        json_array_append_new(json_object_get(bad, "workers"), one);
    }
    refuse_report(bad);
    json_decref(json);
    refuse_report(json_null());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_state),           cmocka_unit_test(test_state_fields),
        cmocka_unit_test(test_state_nonsense),  cmocka_unit_test(test_report),
        cmocka_unit_test(test_report_nonsense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
