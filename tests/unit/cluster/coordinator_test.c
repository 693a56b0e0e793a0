/* SPDX-License-Identifier: MIT
 *
 * The coordinator, driven by messages and a made-up clock: gathering, views, joining, refusals,
 * what it tells.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "support/lab.h"

static void refused(int link, const char *text)
{
    struct cluster_message m;

    assert_int_equal(lab_said(CLUSTER_END, link, &m), 1);
    assert_int_equal(m.code, BASE_ERR_USAGE);
    if (strstr(m.text, text) == NULL)
        fail_msg("'%s' does not say '%s'", m.text, text);
    assert_int_equal(lab_said(CLUSTER_JOB, link, NULL), 0);
}

static void test_start(void **state)
{
    struct cluster_message m;

    (void)state;
    lab_two_hosts(1, false);
    assert_int_equal(lab_said(CLUSTER_JOB, 0, &m), 1);
    assert_true(m.id == 1 && m.workers == 2 && m.host == 0); /* in the order of hosts */
    assert_int_equal(lab_said(CLUSTER_JOB, 1, &m), 1);
    assert_true(m.id == 3 && m.workers == 2 && m.host == 1);
    lab_assert_view(1, 4, 1, 2, 3, 4);
    assert_int_equal(lab_said(CLUSTER_VIEW, 1, NULL), 1);
}

static void test_gathering_ends(void **state)
{
    (void)state;
    lab_begin(3, 1, false);
    lab_join(0, 0, 1);
    lab_pass_alive(59, 1);
    assert_false(cluster_coordinator_over(lab.c));
    lab_pass_alive(2, 1);
    lab_assert_end(BASE_ERR_TIMEOUT, "host 1, 2 of 3 did not come");
}

static void test_join(void **state)
{
    struct cluster_message m;

    (void)state;
    lab_two_hosts(1, true);
    lab_join(2, CLUSTER_ANY_HOST, 2);
    assert_int_equal(lab_said(CLUSTER_JOB, 2, &m), 1);
    assert_true(m.id == 5 && m.host == 2);
    for (uint32_t id = 1; id <= 4; id++)
        lab_works_in(id <= 2 ? 0 : 1, id, 1);
    lab_ready(2, 5);
    lab_assert_view(2, 5, 1, 2, 3, 4, 5);
    lab_ready(2, 6); /* the next one when all have found this one */
    for (uint32_t id = 1; id <= 5; id++) {
        lab_assert_view(2, 5, 1, 2, 3, 4, 5);
        lab_works_in(id <= 2 ? 0 : id <= 4 ? 1 : 2, id, 2);
    }
    lab_assert_view(3, 6, 1, 2, 3, 4, 5, 6);
}

static void test_join_and_loss(void **state)
{
    (void)state;
    lab_two_hosts(1, true);
    lab_join(2, CLUSTER_ANY_HOST, 1);
    lab_ready(2, 5); /* no worker works in view 1 yet */
    assert_int_equal(lab_said(CLUSTER_VIEW, 0, NULL), 1);
    lab_lost(0, 1);
    lab_exited(0, 1, 0, 9);
    lab_assert_view(2, 4, 2, 3, 4, 5);
}

static void test_join_waits_for_reaping(void **state)
{
    (void)state;
    lab_two_hosts(1, true);
    lab_join(2, CLUSTER_ANY_HOST, 1);
    lab_lost(0, 1);
    lab_ready(2, 5);
    assert_int_equal(lab_said(CLUSTER_VIEW, 0, NULL), 1);
    lab_exited(0, 1, 0, 9);
    lab_assert_view(2, 4, 2, 3, 4, 5);
}

/* A guest has lost all its workers, one after the other: it is told of the last one, and may go. */
static void test_guest_without_workers(void **state)
{
    struct cluster_message m;
    int heard;

    (void)state;
    lab_two_hosts(1, true);
    lab_join(2, CLUSTER_ANY_HOST, 2);
    lab_ready(2, 5);
    lab_ready(2, 6);
    lab_exited(2, 5, 0, 9);
    assert_int_equal(lab_said(CLUSTER_END, 2, NULL), 0);
    lab_exited(2, 6, 0, 11);
    assert_int_equal(lab_said(CLUSTER_END, 2, &m), 1);
    assert_int_equal(m.code, BASE_ERR_PEER_LOST);
    assert_non_null(strstr(m.text, "worker 6 on host host-2 (pid 106) died (signal 11"));
    cluster_coordinator_gone(lab.c, 2, "closed its connection", lab.now);
    heard = lab_said(CLUSTER_VIEW, 2, NULL) + lab_said(CLUSTER_LOST, 2, NULL);
    lab_exited(1, 3, 0, 9); /* hosts of the job itself stay */
    lab_exited(1, 4, 0, 9);
    assert_int_equal(lab_said(CLUSTER_END, -1, NULL), 1);
    assert_false(cluster_coordinator_over(lab.c));
    assert_int_equal(lab_said(CLUSTER_VIEW, 2, NULL) + lab_said(CLUSTER_LOST, 2, NULL), heard);
}

/* … but at the end it hears what all hear: the result, or why the job has failed. */
static void test_guest_at_the_end(void **state)
{
    struct cluster_message m;

    (void)state;
    lab_two_hosts(1, true);
    lab_join(2, CLUSTER_ANY_HOST, 1);
    lab_ready(2, 5);
    lab_works_in(0, 1, 1);
    lab_result(0, 1);
    lab_exited(2, 5, 0, 9);
    assert_int_equal(lab_said(CLUSTER_END, 2, NULL), 0);
    lab_finish(state);
    lab_two_hosts(4, true);
    lab_join(2, CLUSTER_ANY_HOST, 1);
    lab_ready(2, 5);
    lab_exited(0, 1, 0, 9);
    lab_exited(0, 2, 0, 9); /* too few */
    lab_exited(2, 5, 1, 0);
    assert_int_equal(lab_said(CLUSTER_END, 2, NULL), 0);
    lab_exited(1, 3, 1, 0);
    lab_exited(1, 4, 1, 0);
    assert_int_equal(lab_said(CLUSTER_END, 2, &m), 1);
    assert_non_null(strstr(m.text, "worker 2 on host host-0"));
}

/* Guests that come while hosts are gathered may leave again; the job does not depend on them. */
static void test_guest_while_gathering(void **state)
{
    struct cluster_message m;

    (void)state;
    lab_begin(2, 0, true);
    lab_join(0, 0, 1);
    lab_join(2, CLUSTER_ANY_HOST, 1);
    cluster_coordinator_gone(lab.c, 2, "closed its connection", lab.now);
    lab_join(3, CLUSTER_ANY_HOST, 1);
    lab_join(1, 1, 1);
    assert_int_equal(lab_said(CLUSTER_JOB, 3, &m), 1);
    for (uint32_t id = 1; id <= 3; id++)
        lab_ready(id <= 2 ? (int)id - 1 : 3, id);
    lab_assert_view(1, 3, 1, 2, 3);
    lab_exited(3, 3, 0, 9);
    lab_assert_view(2, 2, 1, 2);
    assert_int_equal(lab_said(CLUSTER_STOP, -1, NULL), 0);
}

/* One that is ready and dies before it is in a view costs no view. */
static void test_arrival_that_dies(void **state)
{
    (void)state;
    lab_two_hosts(1, true);
    lab_join(2, CLUSTER_ANY_HOST, 1);
    lab_ready(2, 5); /* no worker works in view 1 yet */
    lab_exited(2, 5, 0, 9);
    for (uint32_t id = 1; id <= 4; id++)
        lab_works_in(id <= 2 ? 0 : 1, id, 1);
    assert_int_equal(lab_said(CLUSTER_VIEW, 0, NULL), 1);
}

static void test_coming_back(void **state)
{
    struct cluster_message m;

    (void)state;
    lab_two_hosts(1, true);
    cluster_coordinator_gone(lab.c, 1, "closed its connection", lab.now);
    lab_join(5, 1, 1);
    assert_int_equal(lab_said(CLUSTER_JOB, 5, &m), 1);
    assert_true(m.host == 2 && m.id == 5); /* a new host, a new worker */
}

/* Hosts that come and go, more of them than there can be at once. */
static void test_places_are_free_again(void **state)
{
    struct cluster_message m;

    (void)state;
    lab_two_hosts(1, true);
    for (int i = 0; i < 2 * CLUSTER_MAX_HOSTS; i++) {
        lab.count = 0;
        lab_join(2, CLUSTER_ANY_HOST, 1);
        assert_int_equal(lab_said(CLUSTER_JOB, 2, &m), 1);
        assert_int_equal(m.host, 2);
        cluster_coordinator_gone(lab.c, 2, "closed its connection", lab.now);
        lab_collect();
    }
}

static void test_refusals(void **state)
{
    (void)state;
    lab_two_hosts(1, false);
    lab_join(2, CLUSTER_ANY_HOST, 1);
    refused(2, "takes no more workers");
    lab_finish(NULL);
    lab_begin(3, 1, true);
    lab_join(0, 0, 1);
    lab_join(1, 0, 1);
    refused(1, "host 0 is there already");
    lab_join(2, 3, 1);
    refused(2, "host 3 is not one of 3");
    lab_join_with(3, 1, 1, json_pack("{s:s, s:{s:i}}", "program", "ping", "job", "bytes", 9));
    refused(3, "\"bytes\" is not the one of host 0");
    lab_join_with(4, 1, 1, json_pack("{s:s, s:{}}", "program", "pong", "job"));
    refused(4, "\"program\"");
    lab_tell(5,
             (struct cluster_message){.type = CLUSTER_JOIN, .host = 1, .workers = 1, .version = 9});
    refused(5, "protocol");
    lab_join(6, 1, COMM_MAX_WORKERS);
    refused(6, "at most");
    lab_tell(9, (struct cluster_message){.type = CLUSTER_JOIN,
                                         .host = 1,
                                         .workers = 1,
                                         .version = CLUSTER_PROTOCOL,
                                         .address = "fe80::1%eth0"});
    refused(9, "no numeric address");
    lab_join_with(10, 1, 1,
                  json_pack("{s:{s:{s:f, s:i}}}", "job", "settings", "lr", 0.5, "seed", 2));
    refused(10, "\"seed\" is not the one of host 0");
    assert_false(cluster_coordinator_knows(lab.c, 10));
    /* What is said and agrees, or is not said, is no conflict. */
    lab_join_with(7, 1, 1, json_pack("{s:s, s:{s:s}}", "program", "ping", "job", "mode", "fast"));
    lab_join(8, 2, 1);
    assert_int_equal(lab_said(CLUSTER_JOB, -1, NULL), 3);
}

/* A guest that no worker could reach is refused, and the job goes on without it. */
static void test_guest_of_shared_memory(void **state)
{
    (void)state;
    lab.transport = "shm";
    lab_begin(1, 0, true);
    lab_join(0, 0, 2);
    lab_ready(0, 1);
    lab_ready(0, 2);
    lab_join(1, CLUSTER_ANY_HOST, 1);
    refused(1, "--transport shm");
    lab_assert_view(1, 2, 1, 2);
    assert_int_equal(lab_said(CLUSTER_STOP, -1, NULL), 0);
    lab_finish(NULL);
    lab.transport = "tcp"; /* reaches every host */
    lab_begin(1, 0, true);
    lab_join(0, 0, 1);
    lab_join(1, CLUSTER_ANY_HOST, 1);
    assert_int_equal(lab_said(CLUSTER_JOB, 1, NULL), 1);
}

/* Lost before it said which slot it has: it has none that another could not have. */
static void test_slot_of_nobody(void **state)
{
    (void)state;
    lab_two_hosts(1, true);
    lab_join(2, CLUSTER_ANY_HOST, 2);
    lab_lost(2, 5);
    assert_int_equal(lab_hear(2, (struct cluster_message){.type = CLUSTER_READY, .id = 6}),
                     BASE_OK);
}

static void test_nonsense(void **state)
{
    (void)state;
    lab_two_hosts(1, true);
    assert_int_equal(lab_hear(7, (struct cluster_message){.type = CLUSTER_READY, .id = 1}),
                     BASE_ERR_DATA); /* has not joined */
    assert_int_equal(lab_hear(1, (struct cluster_message){.type = CLUSTER_LOST, .peer = 1}),
                     BASE_ERR_DATA); /* not its own */
    assert_int_equal(lab_hear(1, (struct cluster_message){.type = CLUSTER_READY, .id = 3}),
                     BASE_ERR_DATA); /* twice */
    assert_int_equal(lab_hear(1, (struct cluster_message){.type = CLUSTER_HEARTBEAT, .id = 1}),
                     BASE_ERR_DATA); /* not its own */
    lab_join(2, CLUSTER_ANY_HOST, 2);
    lab_ready(2, 5);
    assert_int_equal(
        lab_hear(2, (struct cluster_message){.type = CLUSTER_READY, .id = 6, .slot = 5}),
        BASE_ERR_DATA); /* another one's slot */
    assert_int_equal(lab_hear(1, (struct cluster_message){.type = CLUSTER_KILL, .id = 3}),
                     BASE_ERR_DATA);
    assert_int_equal(lab_hear(1, (struct cluster_message){.type = CLUSTER_JOIN, .workers = 1}),
                     BASE_ERR_DATA);
    assert_int_equal(lab_hear(1, (struct cluster_message){.type = CLUSTER_RESULT, .id = 77}),
                     BASE_OK);
    assert_int_equal(lab_said(CLUSTER_LOST, -1, NULL), 0);
}

static void test_events(void **state)
{
    static const char *const kinds[] = {"join", "join", "view", "lost", "exit", "view"};
    json_t *event;

    (void)state;
    lab_two_hosts(1, false);
    lab_lost(1, 3);
    lab_exited(1, 3, 0, 9);
    for (size_t i = 0; i < 6; i++) {
        event = cluster_coordinator_event(lab.c);
        assert_string_equal(json_string_value(json_object_get(event, "event")), kinds[i]);
        assert_true(json_is_real(json_object_get(event, "time")));
        json_decref(event);
    }
    assert_null(cluster_coordinator_event(lab.c));
}

static void test_folder(void **state)
{
    struct cluster_message m = {.type = CLUSTER_FOLDER, .id = 3};

    (void)state;
    lab_two_hosts(1, false);
    assert_true(cluster_coordinator_knows(lab.c, 1));
    cluster_message_text(&m, "runs/elsewhere");
    lab_tell(1, m); /* on another disk than host 0's */
    assert_null(cluster_coordinator_folder(lab.c));
    m.id = 1;
    cluster_message_text(&m, "runs/mine");
    lab_tell(0, m);
    assert_string_equal(cluster_coordinator_folder(lab.c), "runs/mine");
}

static void test_status(void **state)
{
    json_t *status, *worker;

    (void)state;
    lab_two_hosts(1, false);
    lab_tell(1, (struct cluster_message){.type = CLUSTER_HEARTBEAT,
                                         .id = 3,
                                         .load = {.cpu = 0.75, .step = 12, .step_rate = 3}});
    lab_lost(0, 2);
    status = cluster_coordinator_status(lab.c, lab.now + 2);
    assert_int_equal(json_integer_value(json_object_get(status, "view")), 1);
    assert_string_equal(json_string_value(json_object_get(status, "phase")), "running");
    assert_int_equal(json_array_size(json_object_get(status, "hosts")), 2);
    worker = json_array_get(json_object_get(status, "workers"), 2);
    assert_int_equal(json_integer_value(json_object_get(worker, "step")), 12);
    assert_int_equal(json_integer_value(json_object_get(worker, "rank")), 2);
    worker = json_array_get(json_object_get(status, "workers"), 1);
    assert_string_equal(json_string_value(json_object_get(worker, "state")), "leaving");
    json_decref(status);
}

#define TEST(name) cmocka_unit_test_teardown(name, lab_finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_start),
        TEST(test_gathering_ends),
        TEST(test_join),
        TEST(test_join_and_loss),
        TEST(test_join_waits_for_reaping),
        TEST(test_guest_without_workers),
        TEST(test_guest_at_the_end),
        TEST(test_guest_while_gathering),
        TEST(test_arrival_that_dies),
        TEST(test_coming_back),
        TEST(test_places_are_free_again),
        TEST(test_refusals),
        TEST(test_guest_of_shared_memory),
        TEST(test_slot_of_nobody),
        TEST(test_nonsense),
        TEST(test_events),
        TEST(test_folder),
        TEST(test_status),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
