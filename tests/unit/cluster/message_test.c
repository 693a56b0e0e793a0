/* SPDX-License-Identifier: MIT
 *
 * Control messages: every type there and back; each field missing, of the wrong type, out of its
 * bounds, or one too many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "cluster/message.h"

static struct cluster_message full(enum cluster_type type)
{
    struct cluster_message m = {.type = type,
                                .id = 3,
                                .host = 1,
                                .peer = 7,
                                .view = 9,
                                .version = CLUSTER_PROTOCOL,
                                .term = 2,
                                .state_term = 1,
                                .serial = 5,
                                .port = 4711,
                                .slot = 2,
                                .pid = 12345,
                                .code = 1,
                                .signal = 9,
                                .workers = 4,
                                .load = {0.5, 1e9, 1.25, 10.5, 77},
                                .key = "view/1/ring",
                                .bytes = UINT64_C(1) << 33,
                                .address = "10.0.0.2",
                                .text = "was silent",
                                .step = 12,
                                .body = json_pack("{s:s}", "k", "32")};

    m.members = (struct comm_view){.number = 2, .size = 1};
    m.members.members[0] = (struct comm_member){.id = 3, .host = 1, .slot = 2, .port = 4711};
    strcpy(m.members.members[0].address, "10.0.0.2");
    return m;
}

static void test_round_trip(void **state)
{
    (void)state;
    for (int type = 0; type < CLUSTER_TYPES; type++) {
        struct cluster_message m = full((enum cluster_type)type), back;
        json_t *json = cluster_message_to_json(&m), *again;

        assert_int_equal(cluster_message_from_json(json, &back), BASE_OK);
        assert_int_equal(back.type, type);
        again = cluster_message_to_json(&back);
        assert_true(json_equal(json, again));
        json_decref(again);
        json_decref(json);
        cluster_message_fini(&m);
        cluster_message_fini(&back);
    }
}

static void test_values(void **state)
{
    struct cluster_message m = full(CLUSTER_EXITED), back;
    json_t *json = cluster_message_to_json(&m);

    (void)state;
    assert_int_equal(cluster_message_from_json(json, &back), BASE_OK);
    assert_true(back.id == 3 && back.pid == 12345 && back.code == 1 && back.signal == 9);
    assert_string_equal(back.text, "was silent");
    assert_int_equal(back.port, 0); /* not a field of this type */
    json_decref(json);
    cluster_message_fini(&m);
}

static void refuse(json_t *json)
{
    struct cluster_message m;

    assert_int_equal(cluster_message_from_json(json, &m), BASE_ERR_DATA);
    assert_null(m.body);
    json_decref(json);
}

/* Each field of each type taken away, of another type, and one more. */
static void test_fields(void **state)
{
    (void)state;
    for (int type = 0; type < CLUSTER_TYPES; type++) {
        struct cluster_message m = full((enum cluster_type)type);
        json_t *json = cluster_message_to_json(&m), *bad, *value;
        const char *key;

        json_object_foreach(json, key, value)
        {
            bad = json_deep_copy(json);
            json_object_del(bad, key);
            refuse(bad);
            bad = json_deep_copy(json);
            json_object_set_new(bad, key, json_true());
            refuse(bad);
        }
        bad = json_deep_copy(json);
        json_object_set_new(bad, "more", json_integer(1));
        refuse(bad);
        json_decref(json);
        cluster_message_fini(&m);
    }
}

static void test_bounds(void **state)
{
    static const struct {
        enum cluster_type type;
        const char *key;
        json_int_t value;
    } bad[] = {
        {CLUSTER_READY, "id", -1},
        {CLUSTER_READY, "id", INT64_C(1) << 32},
        {CLUSTER_READY, "port", 65536},
        {CLUSTER_READY, "slot", COMM_MAX_WORKERS},
        {CLUSTER_READY, "pid", -1},
        {CLUSTER_JOIN, "workers", 0},
        {CLUSTER_JOIN, "workers", 65},
        {CLUSTER_JOIN, "host", 65536},
        {CLUSTER_EXITED, "code", 256},
        {CLUSTER_EXITED, "signal", 129},
        {CLUSTER_SUSPECT, "peer", 0},
        {CLUSTER_ACCUSE, "peer", 0},
        {CLUSTER_JOIN, "port", 65536},
        {CLUSTER_LEAD, "term", -1},
        {CLUSTER_LEAD, "term", CLUSTER_MAX_TERM + 1},
        {CLUSTER_ASK, "state_term", CLUSTER_MAX_TERM + 1},
        {CLUSTER_ASK, "serial", INT64_C(1) << 32},
        {CLUSTER_APPLIED, "step", -1},
        {CLUSTER_VOTE, "code", 256},
        {CLUSTER_REGION, "bytes", -1},
        {CLUSTER_REGION, "bytes", INT64_MAX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct cluster_message m = full(bad[i].type);
        json_t *json = cluster_message_to_json(&m);

        json_object_set_new(json, bad[i].key, json_integer(bad[i].value));
        refuse(json);
        cluster_message_fini(&m);
    }
}

static void test_texts(void **state)
{
    char long_text[2000];
    struct cluster_message m = full(CLUSTER_REGION), back;
    json_t *json = cluster_message_to_json(&m);

    (void)state;
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[CLUSTER_KEY_TEXT] = '\0';
    json_object_set_new(json, "key", json_string(long_text));
    refuse(json_incref(json));
    json_object_set_new(json, "key", json_stringn("a\0b", 3));
    refuse(json_incref(json));
    json_object_set_new(json, "key", json_string(long_text + 1));
    assert_int_equal(cluster_message_from_json(json, &back), BASE_OK);
    cluster_message_fini(&back);
    long_text[CLUSTER_KEY_TEXT] = 'x';
    cluster_message_text(&m, long_text); /* what is too long is cut */
    assert_int_equal(strlen(m.text), sizeof m.text - 1);
    json_decref(json);
    cluster_message_fini(&m);
}

static void test_load(void **state)
{
    struct cluster_message m = full(CLUSTER_HEARTBEAT);
    json_t *json = cluster_message_to_json(&m), *bad;

    (void)state;
    bad = json_deep_copy(json);
    json_object_set_new(json_object_get(bad, "load"), "cpu", json_real(-0.5));
    refuse(bad);
    bad = json_deep_copy(json);
    json_object_set_new(json_object_get(bad, "load"), "step", json_integer(-2));
    refuse(bad);
    bad = json_deep_copy(json);
    json_object_set_new(json_object_get(bad, "load"), "more", json_integer(1));
    refuse(bad);
    json_decref(json);
    cluster_message_fini(&m);
}

static void test_nonsense(void **state)
{
    (void)state;
    refuse(json_array());
    refuse(json_null());
    refuse(json_object());
    refuse(json_pack("{s:s}", "type", "reboot"));
    refuse(json_pack("{s:i}", "type", 3));
}

static struct comm_mailbox *box_of(int fd)
{
    struct comm_stream *stream;

    assert_int_equal(comm_stream_of(fd, &stream), BASE_OK);
    return comm_mailbox_new(stream);
}

/* Through a mailbox: nothing yet, messages in their order with a descriptor, nonsense, the end. */
static void test_send_and_receive(void **state)
{
    struct cluster_message m = full(CLUSTER_REGION), back;
    struct comm_mailbox *from, *to;
    json_t *nonsense = json_pack("{s:s}", "type", "reboot");
    int pair[2], fd;
    bool any;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    from = box_of(pair[0]);
    to = box_of(pair[1]);
    assert_int_equal(cluster_message_receive(to, &back, &any), BASE_OK);
    assert_false(any);
    cluster_message_send(from, &m, STDERR_FILENO);
    m.type = CLUSTER_RESULT;
    cluster_message_send(from, &m, -1);
    comm_mailbox_send(from, nonsense);
    cluster_message_send(NULL, &m, -1);
    assert_int_equal(comm_mailbox_flush(from, base_now() + 5), BASE_OK);
    assert_int_equal(cluster_message_receive(to, &back, &any), BASE_OK);
    assert_true(any && back.type == CLUSTER_REGION);
    fd = comm_mailbox_take_fd(to);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(cluster_message_receive(to, &back, &any), BASE_OK);
    assert_true(any && back.type == CLUSTER_RESULT && json_equal(back.body, m.body));
    assert_int_equal(comm_mailbox_take_fd(to), -1);
    cluster_message_fini(&back);
    assert_int_equal(cluster_message_receive(to, &back, &any), BASE_ERR_DATA);
    assert_false(any);
    comm_mailbox_free(from);
    assert_int_equal(cluster_message_receive(to, &back, &any), BASE_ERR_PEER_LOST);
    assert_false(any);
    comm_mailbox_free(to);
    json_decref(nonsense);
    cluster_message_fini(&m);
}

static void test_heartbeat_interval(void **state)
{
    (void)state;
    assert_true(cluster_heartbeat_interval(0.2) == 0.2 / 8);
    assert_true(cluster_heartbeat_interval(4) == 0.5);
    assert_true(cluster_heartbeat_interval(3600) == 0.5);
}

static void test_token_is_wiped(void **state)
{
    json_t *token = json_string("plt_0123456789abcdef"), *body = json_pack("{s:i}", "threads", 1);
    const char *text = json_string_value(token);

    (void)state;
    cluster_token_wipe(body); /* without one */
    json_object_set(body, "token", token);
    cluster_token_wipe(body);
    assert_null(json_object_get(body, "token"));
    assert_int_equal(json_object_size(body), 1);
    for (size_t i = 0; i < json_string_length(token); i++)
        assert_int_equal(text[i], 0);
    cluster_token_wipe(NULL);
    json_decref(token);
    json_decref(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_values),
        cmocka_unit_test(test_fields),         cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_texts),          cmocka_unit_test(test_load),
        cmocka_unit_test(test_nonsense),       cmocka_unit_test(test_send_and_receive),
        cmocka_unit_test(test_token_is_wiped), cmocka_unit_test(test_heartbeat_interval),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
