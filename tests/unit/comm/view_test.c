/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "comm/view.h"

static const struct comm_view example = {
    .number = 7,
    .size = 3,
    .members = {{.id = 4, .host = 0, .slot = 0, .port = 4711, .address = "10.0.0.1"},
                {.id = 1, .host = 1, .slot = 0, .port = 4712, .address = "fe80::1"},
                {.id = UINT32_MAX, .host = 1, .slot = 63}}};

static void goes_there_and_back(void **state)
{
    json_t *json = comm_view_to_json(&example);
    struct comm_view view;

    (void)state;
    assert_int_equal(comm_view_from_json(json, &view), BASE_OK);
    assert_int_equal(view.number, 7);
    assert_int_equal(view.size, 3);
    for (uint32_t i = 0; i < view.size; i++) {
        assert_int_equal(view.members[i].id, example.members[i].id);
        assert_int_equal(view.members[i].host, example.members[i].host);
        assert_int_equal(view.members[i].slot, example.members[i].slot);
        assert_int_equal(view.members[i].port, example.members[i].port);
        assert_string_equal(view.members[i].address, example.members[i].address);
    }
    json_decref(json);
}

static void knows_ranks(void **state)
{
    (void)state;
    assert_int_equal(comm_view_rank(&example, 4), 0);
    assert_int_equal(comm_view_rank(&example, UINT32_MAX), 2);
    assert_int_equal(comm_view_rank(&example, 0), -1);
    assert_int_equal(comm_view_rank(&example, 2), -1);
}

static void assert_bad(const char *text)
{
    struct comm_view view;
    json_t *json;

    assert_int_equal(base_json_parse(text, strlen(text), &json), BASE_OK);
    if (comm_view_from_json(json, &view) != BASE_ERR_DATA)
        fail_msg("accepted: %s", text);
    assert_int_equal(view.size, 0);
    json_decref(json);
}

#define MEMBER(id, host, slot, address, port) \
    "{\"id\":" id ",\"host\":" host ",\"slot\":" slot ",\"address\":" address ",\"port\":" port "}"
#define VIEW(number, members) "{\"number\":" number ",\"members\":[" members "]}"
#define GOOD MEMBER("1", "0", "0", "\"127.0.0.1\"", "80")

static void refuses_what_is_wrong(void **state)
{
    (void)state;
    assert_bad("{}");
    assert_bad("[]");
    assert_bad("{\"number\":1}");
    assert_bad("{\"number\":1,\"members\":{}}");
    assert_bad(VIEW("1", ""));
    assert_bad(VIEW("0", GOOD));
    assert_bad(VIEW("-1", GOOD));
    assert_bad(VIEW("4294967296", GOOD));
    assert_bad(VIEW("\"1\"", GOOD));
    assert_bad(VIEW("1", "3"));
    assert_bad(VIEW("1", "{}"));
    assert_bad(VIEW("1", MEMBER("0", "0", "0", "\"\"", "0")));
    assert_bad(VIEW("1", MEMBER("4294967296", "0", "0", "\"\"", "0")));
    assert_bad(VIEW("1", MEMBER("1", "-1", "0", "\"\"", "0")));
    assert_bad(VIEW("1", MEMBER("1", "65536", "0", "\"\"", "0")));
    assert_bad(VIEW("1", MEMBER("1", "0", "64", "\"\"", "0")));
    assert_bad(VIEW("1", MEMBER("1", "0", "0", "\"127.0.0.1\"", "65536")));
    assert_bad(VIEW("1", MEMBER("1", "0", "0", "\"localhost\"", "80")));
    assert_bad(VIEW("1", MEMBER("1", "0", "0", "\"\"", "80")));
    assert_bad(VIEW("1", MEMBER("1", "0", "0", "null", "0")));
    assert_bad(VIEW("1", GOOD "," MEMBER("1", "0", "1", "\"\"", "0"))); /* id twice */
    assert_bad(VIEW("1", GOOD "," MEMBER("2", "0", "0", "\"\"", "0"))); /* slot twice */
}

static void refuses_more_than_fit(void **state)
{
    json_t *json = json_pack("{s:i, s:[]}", "number", 1, "members");
    json_t *members = json_object_get(json, "members");
    struct comm_view view;

    (void)state;
    for (int i = 0; i < COMM_MAX_WORKERS; i++)
        json_array_append_new(members, json_pack("{s:i, s:i, s:i, s:s, s:i}", "id", i + 1, "host",
                                                 i, "slot", 0, "address", "", "port", 0));
    assert_int_equal(comm_view_from_json(json, &view), BASE_OK);
    json_array_append_new(members, json_pack("{s:i, s:i, s:i, s:s, s:i}", "id", 100, "host", 100,
                                             "slot", 0, "address", "", "port", 0));
    assert_int_equal(comm_view_from_json(json, &view), BASE_ERR_DATA);
    json_decref(json);
}

static void refuses_a_long_address(void **state)
{
    char address[COMM_ADDRESS_TEXT + 1] = {0};
    json_t *json;
    struct comm_view view;

    (void)state;
    memset(address, '1', COMM_ADDRESS_TEXT);
    json = json_pack("{s:i, s:[{s:i, s:i, s:i, s:s, s:i}]}", "number", 1, "members", "id", 1,
                     "host", 0, "slot", 0, "address", address, "port", 0);
    assert_int_equal(comm_view_from_json(json, &view), BASE_ERR_DATA);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_there_and_back),    cmocka_unit_test(knows_ranks),
        cmocka_unit_test(refuses_what_is_wrong),  cmocka_unit_test(refuses_more_than_fit),
        cmocka_unit_test(refuses_a_long_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
