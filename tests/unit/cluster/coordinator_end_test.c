/* SPDX-License-Identifier: MIT
 *
 * How the coordinator ends a job: results, too few workers, a stop, and who is to blame.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cluster/coordinator_private.h"
#include "support/lab.h"

/* A replacement that is stopped before it has spoken is not waited for when the work is done. */
static void test_too_late(void **state)
{
    struct cluster_message m;

    (void)state;
    lab_two_hosts_that_restart();
    lab_exited(1, 3, 0, 9);
    lab_result(0, 1);
    lab_result(0, 2);
    lab_result(1, 4);
    assert_int_equal(lab_said(CLUSTER_KILL, 1, &m), 1);
    assert_int_equal(m.id, 5);
    lab_exited(0, 1, 0, 0);
    lab_exited(0, 2, 0, 0);
    lab_exited(1, 4, 0, 0);
    assert_false(cluster_coordinator_over(lab.c));
    lab_exited(1, 5, 0, 9);
    assert_int_equal(lab_said(CLUSTER_JOB, 1, NULL), 2); /* and not replaced again */
    lab_assert_end(BASE_OK, "");
}

/* Workers finish in a view while the next one is published: a new worker waits there in vain, and
 * one that was interrupted goes on without those that are done. */
static void test_done_in_the_former_view(void **state)
{
    struct cluster_message m;

    (void)state;
    lab_two_hosts_that_restart();
    lab_exited(1, 3, 0, 9);
    lab_works_in(0, 1, 2);
    lab_works_in(0, 2, 2);
    lab_works_in(1, 4, 2);
    lab_ready(1, 5);
    lab_assert_view(3, 4, 1, 2, 4, 5);
    lab_result_of(0, 1, 2);
    assert_int_equal(lab_said(CLUSTER_LOST, 1, &m),
                     2); /* after worker 3: ends the wait in view 3 */
    assert_int_equal(m.peer, 1);
    assert_int_equal(m.view, 3);
    lab_assert_view(4, 3, 2, 4, 5);
    lab_result_of(0, 2, 2);
    lab_assert_view(5, 2, 4, 5);
    assert_int_equal(lab_said(CLUSTER_KILL, 1, NULL), 0);
    lab_result_of(1, 4, 2);
    assert_int_equal(lab_said(CLUSTER_KILL, 1, &m), 1);
    assert_int_equal(m.id, 5);
    for (uint32_t id = 1; id <= 5; id++)
        if (id != 3)
            lab_exited(id > 2, id, 0, id == 5 ? 9 : 0);
    lab_assert_end(BASE_OK, "");
}

/* A loss that the job has survived is not what it ends of. */
static void test_blame(void **state)
{
    (void)state;
    lab_two_hosts(3, false);
    lab_exited(1, 3, 0, 9);
    lab_assert_view(2, 3, 1, 2, 4);
    lab_exited(1, 4, 3, 0);
    lab_exited(0, 1, 1, 0);
    lab_exited(0, 2, 1, 0);
    lab_assert_end(BASE_ERR_PEER_LOST, "worker 4 on host host-1 (pid 104) ended with a failure");
}

/* A loss that the others got over is not what a later failure is blamed on. */
static void test_blames_the_last_cause(void **state)
{
    (void)state;
    lab_two_hosts(2, false);
    lab_lost(1, 4);
    lab_exited(1, 4, 0, 9);
    lab_assert_view(2, 3, 1, 2, 3);
    lab_lost(0, 2);
    lab_lost(1, 3);
    lab_exited(0, 2, 0, 11);
    lab_exited(1, 3, 0, 9);
    lab_exited(0, 1, 1, 0);
    lab_assert_end(BASE_ERR_PEER_LOST, "worker 2 on host host-0 (pid 102) was killed (signal 11");
}

/* … nor one that died before it was in a view: none follows that would tell of a new beginning. */
static void test_blames_no_guest_that_failed_to_start(void **state)
{
    (void)state;
    lab_two_hosts(4, true);
    lab_join(2, CLUSTER_ANY_HOST, 1);
    lab_exited(2, 5, 2, 0);
    lab_exited(1, 4, 0, 9);
    for (uint32_t id = 1; id <= 3; id++)
        lab_exited(id <= 2 ? 0 : 1, id, 1, 0);
    lab_assert_end(BASE_ERR_PEER_LOST, "worker 4 on host host-1");
}

/* A worker's own failure ends the job also where a loss would not; the loss before it, which the
 * others had not got over yet, is not to blame. */
static void test_own_failure(void **state)
{
    struct cluster_message m;

    (void)state;
    lab.least = 1;
    lab_two_hosts(0, false);
    lab_lost(0, 1);
    lab_lost(1, 4);
    assert_int_equal(lab_said(CLUSTER_STOP, -1, NULL), 0);
    lab_failed(1, 4, BASE_ERR_DATA, "no such folder");
    lab_exited(1, 4, 1, 0);
    assert_int_equal(lab_said(CLUSTER_STOP, 0, &m), 1);
    assert_true(m.code != 0 && strstr(m.text, "worker 4 on host host-1 (pid 104)") != NULL);
    lab_exited(0, 1, 0, 9);
    lab_exited(0, 2, 1, 0);
    lab_exited(1, 3, 1, 0);
    lab_assert_end(BASE_ERR_DATA, "worker 4 on host host-1: no such folder");
}

/* What is wrong for all workers is no worker's fault; later failures are told no more. */
static void test_wrong_input(void **state)
{
    (void)state;
    lab_two_hosts(0, false);
    lab_failed(1, 4, BASE_ERR_USAGE, "unknown data 'x'");
    lab_failed(0, 1, BASE_ERR_DATA, "another one");
    lab_exited(1, 4, 2, 0);
    for (uint32_t id = 1; id <= 3; id++)
        lab_exited(id > 2, id, 1, 0);
    lab_assert_end(BASE_ERR_USAGE, "unknown data 'x'");
}

/* All workers fail by themselves and are lost before the first has exited: what they said ends the
 * job, and not that none is left. */
static void test_all_fail(void **state)
{
    struct cluster_message m;

    (void)state;
    lab.least = 1;
    lab_two_hosts(0, false);
    for (uint32_t id = 1; id <= 4; id++)
        lab_failed(id > 2, id, BASE_ERR_DATA, "no such thing");
    for (uint32_t id = 1; id <= 4; id++)
        lab_lost(id > 2, id);
    assert_int_equal(lab_said(CLUSTER_STOP, 0, NULL), 0);
    for (uint32_t id = 1; id <= 4; id++)
        lab_exited(id > 2, id, 1, 0);
    assert_true(lab_said(CLUSTER_STOP, 0, &m) <= 1);
    lab_assert_end(BASE_ERR_DATA, "no such thing");
}

/* The same where the person said how few may be left or that the dead are replaced: a wrong command
 * line or model is so for every worker. */
static void test_wrong_input_is_not_survived(void **state)
{
    static const base_code codes[] = {BASE_ERR_USAGE, BASE_ERR_MODEL};

    for (int i = 0; i < 4; i++) {
        if (i > 0)
            lab_finish(state);
        if (i < 2)
            lab_two_hosts(1, false);
        else
            lab_two_hosts_that_restart();
        for (uint32_t id = 1; id <= 4; id++)
            lab_failed(id > 2, id, codes[i % 2], "unknown thing 'x'");
        for (uint32_t id = 1; id <= 4; id++)
            lab_exited(id > 2, id, 2, 0);
        lab_assert_end(codes[i % 2], "unknown thing 'x'");
    }
}

/* … unless the person said how few may be left, or it is a guest's. */
static void test_own_failure_survived(void **state)
{
    (void)state;
    lab.least = 1;
    lab_two_hosts(2, false);
    lab_exited(1, 4, 1, 0);
    lab_assert_view(2, 3, 1, 2, 3);
    lab_finish(state);
    lab.least = 1;
    lab_two_hosts(0, true);
    lab_join(2, CLUSTER_ANY_HOST, 1);
    for (uint32_t id = 1; id <= 4; id++)
        lab_works_in(id <= 2 ? 0 : 1, id, 1);
    lab_ready(2, 5);
    lab_assert_view(2, 5, 1, 2, 3, 4, 5);
    lab_exited(2, 5, 1, 0);
    lab_assert_view(3, 4, 1, 2, 3, 4);
    assert_int_equal(lab_said(CLUSTER_STOP, -1, NULL), 0);
}

/* … and not when others have given results: it could not write what they leave to it. */
static void test_own_failure_at_the_end(void **state)
{
    (void)state;
    lab_two_hosts_that_restart();
    lab_result(0, 2);
    lab_exited(0, 1, 1, 0);
    lab_result(1, 4);
    for (uint32_t id = 2; id <= 4; id++)
        lab_exited(id == 2 ? 0 : 1, id, id == 3 ? 1 : 0, 0);
    lab_assert_end(BASE_ERR_PEER_LOST, "worker 1 on host host-0 (pid 101) ended with a failure");
}

/* A worker that was never started has no pid to tell. */
static void test_no_pid(void **state)
{
    struct cluster_message m = {0};

    (void)state;
    cluster_coordinator_last_words(
        lab.c, &(struct failure){.id = 3, .host = "host-1", .why = "could not be started"}, &m);
    assert_string_equal(m.text, "worker 3 on host host-1 could not be started");
}

static void test_too_few(void **state)
{
    struct cluster_message m;

    (void)state;
    lab_two_hosts(0, false);
    lab_lost(1, 4);
    assert_int_equal(lab_said(CLUSTER_STOP, 0, &m), 1);
    assert_true(m.code != 0);
    lab_exited(1, 4, 0, 9);
    for (uint32_t id = 1; id <= 3; id++) {
        assert_false(cluster_coordinator_over(lab.c));
        lab_exited(id <= 2 ? 0 : 1, id, 1, 0);
    }
    lab_assert_end(BASE_ERR_PEER_LOST, "worker 4 on host host-1 (pid 104) was killed (signal 9, "
                                       "SIGKILL); its last lines:\nfirst line\nlast line");
    assert_int_equal(lab_said(CLUSTER_VIEW, 0, NULL), 1);
    assert_null(cluster_coordinator_result(lab.c));
}

static void test_failed_workers_may_save(void **state)
{
    (void)state;
    lab_two_hosts(0, false);
    lab_exited(0, 1, 3, 0);
    lab_pass_alive(29, 2);
    assert_false(cluster_coordinator_over(lab.c));
    lab_pass_alive(2, 2);
    lab_assert_end(BASE_ERR_PEER_LOST,
                   "worker 1 on host host-0 (pid 101) ended with a failure (exit code 3)");
}

static void test_result(void **state)
{
    (void)state;
    lab_two_hosts(1, false);
    for (int id = 4; id >= 1; id--)
        lab_result(id <= 2 ? 0 : 1, (uint32_t)id);
    for (uint32_t id = 1; id <= 4; id++)
        lab_exited(id <= 2 ? 0 : 1, id, 0, 0);
    lab_assert_end(BASE_OK, "");
    assert_int_equal(lab_said(CLUSTER_VIEW, 0, NULL), 1); /* ends are no losses */
    assert_int_equal(json_integer_value(json_object_get(cluster_coordinator_result(lab.c), "from")),
                     1);
}

static void test_killed_at_exit(void **state)
{
    (void)state;
    lab_two_hosts(0, false);
    for (uint32_t id = 1; id <= 4; id++)
        lab_result(id <= 2 ? 0 : 1, id);
    lab_lost(0, 1); /* has given its result: no loss */
    lab_exited(0, 1, 0, 9);
    for (uint32_t id = 2; id <= 4; id++)
        lab_exited(id <= 2 ? 0 : 1, id, 0, 0);
    lab_assert_end(BASE_OK, "");
}

static void test_nobody_left(void **state)
{
    (void)state;
    lab_begin(1, 1, false);
    lab_join(0, 0, 1);
    lab_ready(0, 1);
    lab_exited(0, 1, 0, 0);
    lab_assert_end(BASE_ERR_PEER_LOST, "ended without a result");
}

static void test_stop(void **state)
{
    struct cluster_message stop = {.type = CLUSTER_STOP}, m;

    (void)state;
    lab_two_hosts(1, false);
    cluster_message_text(&stop, "SIGINT on host 1");
    lab_tell(1, stop);
    lab_tell(1, stop);
    assert_int_equal(lab_said(CLUSTER_STOP, 0, &m), 1);
    assert_int_equal(m.code, 0);
    assert_string_equal(m.text, "SIGINT on host 1");
    lab_lost(1, 3); /* the others must be able to finish */
    lab_exited(1, 3, 0, 9);
    lab_assert_view(2, 3, 1, 2, 4);
}

static void test_stop_early(void **state)
{
    struct cluster_message stop = {.type = CLUSTER_STOP};

    (void)state;
    lab_begin(2, 1, false);
    lab_join(0, 0, 2);
    cluster_message_text(&stop, "SIGINT on host 0");
    lab_tell(0, stop);
    lab_assert_end(BASE_ERR_INTERRUPTED, "SIGINT");
}

#define TEST(name) cmocka_unit_test_teardown(name, lab_finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_too_late),
        TEST(test_done_in_the_former_view),
        TEST(test_blame),
        TEST(test_blames_the_last_cause),
        TEST(test_blames_no_guest_that_failed_to_start),
        TEST(test_own_failure),
        TEST(test_wrong_input),
        TEST(test_all_fail),
        TEST(test_wrong_input_is_not_survived),
        TEST(test_own_failure_survived),
        TEST(test_own_failure_at_the_end),
        TEST(test_no_pid),
        TEST(test_too_few),
        TEST(test_failed_workers_may_save),
        TEST(test_result),
        TEST(test_killed_at_exit),
        TEST(test_nobody_left),
        TEST(test_stop),
        TEST(test_stop_early),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
