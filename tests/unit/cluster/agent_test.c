/* SPDX-License-Identifier: MIT
 *
 * Agents and workers for real: this very program is what agents start as `worker ID`, with programs
 * that end well, fail, die, stop or print.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/agent.h"
#include "cluster/process.h"
#include "cluster/worker.h"

/* ---- programs ---- */

/* A value from every worker of the host, through memory of a key. */
static base_status share(struct cluster_worker *worker, const json_t *job, json_t **result_p)
{
    base_status st = BASE_OK;
    struct comm_view view = {0};
    struct comm_shared shared = {0};
    struct comm_group *group = NULL;
    double deadline = base_now() + 30;
    json_int_t sum = 0;

    (void)job;
    TRY(cluster_worker_group(worker, 30, &view, &group));
    TRY(comm_shared_open(cluster_worker_endpoint(worker), "view/1/test", 4096, &shared));
    ((uint32_t *)shared.at)[comm_group_rank(group)] = cluster_worker_id(worker);
    TRY(comm_local_barrier(group, deadline));
    for (uint32_t i = 0; i < view.size; i++)
        sum += ((uint32_t *)shared.at)[i];
    TRY(comm_local_barrier(group, deadline));
    *result_p = json_pack("{s:I, s:i, s:o}", "sum", sum, "threads", cluster_worker_threads(worker),
                          "launch", cluster_worker_launch(worker));
out:
    comm_shared_close(&shared);
    cluster_worker_leave(worker, group);
    return st;
}

/* Worker 2 comes to grief in the way the job says; the others wait for it in a barrier, and then go
 * to the next view, or end at once if the job says so. */
static base_status grieve(struct cluster_worker *worker, const json_t *job, json_t **result_p)
{
    base_status st = BASE_OK;
    const char *how = json_string_value(json_object_get(job, "how"));
    struct comm_view view = {0};
    struct comm_group *group = NULL;

    TRY(cluster_worker_group(worker, 30, &view, &group));
    if (cluster_worker_id(worker) == 2) {
        printf("about to %s\n", how);
        fflush(stdout);
        if (strcmp(how, "fail") == 0)
            TRY(base_fail(BASE_ERR_DATA, "no such thing"));
        if (strcmp(how, "crash") == 0)
            abort();
        if (strcmp(how, "vanish") == 0)
            _exit(0);
        raise(strcmp(how, "stop") == 0 ? SIGSTOP : SIGKILL);
    }
    st = comm_local_barrier(group, base_now() + 30);
    if (st == BASE_ERR_PEER_LOST && !json_is_true(json_object_get(job, "flee"))) {
        uint32_t lost = comm_group_lost(group);

        cluster_worker_leave(worker, group);
        group = NULL;
        /* Not connected: a worker that ends at once is lost for one that still connects with it. */
        st = cluster_worker_view(worker, view.number, base_now() + 30, &view);
        if (st == BASE_OK)
            *result_p =
                json_pack("{s:i, s:i, s:i}", "lost", lost, "view", view.number, "size", view.size);
    }
out:
    cluster_worker_leave(worker, group);
    return st;
}

/* Runs until it is asked to stop. */
static base_status linger(struct cluster_worker *worker, const json_t *job, json_t **result_p)
{
    double deadline = base_now() + 30;
    struct comm_view view;

    (void)job;
    if (cluster_worker_view(worker, 0, deadline, &view) != BASE_OK)
        return BASE_ERR_TIMEOUT;
    if (cluster_worker_id(worker) == 1)
        kill(getppid(), SIGTERM);
    while (!cluster_worker_stopping(worker) && base_now() < deadline)
        usleep(1000);
    *result_p = json_pack("{s:b}", "stopped", cluster_worker_stopping(worker));
    return BASE_OK;
}

static base_status dumpable(struct cluster_worker *worker, const json_t *job, json_t **result_p)
{
    (void)worker;
    (void)job;
    *result_p = json_pack("{s:i}", "dumpable", prctl(PR_GET_DUMPABLE));
    return BASE_OK;
}

static const struct cluster_program program_share = {.name = "share", .run = share};
static const struct cluster_program program_grieve = {.name = "grieve", .run = grieve};
static const struct cluster_program program_linger = {.name = "linger", .run = linger};
static const struct cluster_program program_dumpable = {.name = "dumpable", .run = dumpable};
static const struct cluster_program *const programs[] = {&program_share, &program_grieve,
                                                         &program_linger, &program_dumpable, NULL};

/* ---- tests ---- */

static bool with_token; /* the jobs of `run` have one */

static base_status run(const char *program, int workers, int min_workers, json_t *job,
                       json_t **result_p)
{
    struct cluster_setup setup = {.launch = {.workers = workers,
                                             .hosts = 1,
                                             .master = "127.0.0.1",
                                             .bind = "127.0.0.1",
                                             .source = "flags",
                                             .has_secret = with_token,
                                             .min_workers = min_workers,
                                             .silence = 2,
                                             .gather = 30},
                                  .program = program,
                                  .job = job};
    base_status st = cluster_agent_run(&setup, result_p);

    json_decref(job);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left, not even a zombie */
    return st;
}

static int number(const json_t *object, const char *key)
{
    return (int)json_integer_value(json_object_get(object, key));
}

/* Again and again: no worker may end before the agent has heard its result. */
static void test_share(void **state)
{
    json_t *result = NULL;

    (void)state;
    for (int i = 0; i < 20; i++) {
        json_decref(result);
        if (run("share", 3, 0, NULL, &result) != BASE_OK)
            fail_msg("%s", base_message());
    }
    assert_int_equal(number(result, "sum"), 1 + 2 + 3);
    assert_int_equal(number(result, "threads"), cluster_cores() > 3 ? cluster_cores() / 3 : 1);
    assert_int_equal(number(json_object_get(result, "launch"), "workers"), 3);
    assert_int_equal(number(json_object_get(result, "launch"), "hosts"), 1);
    json_decref(result);
}

/* A worker that knows the token leaves it in no core file; others can be looked into. */
static void test_dumpable(void **state)
{
    (void)state;
    for (int token = 0; token < 2; token++) {
        json_t *result;

        with_token = token == 1;
        assert_int_equal(run("dumpable", 1, 0, NULL, &result), BASE_OK);
        assert_int_equal(number(result, "dumpable"), token == 1 ? 0 : 1);
        json_decref(result);
    }
    with_token = false;
}

static void grieve_and_go_on(const char *how)
{
    json_t *result;

    if (run("grieve", 3, 2, json_pack("{s:s}", "how", how), &result) != BASE_OK)
        fail_msg("after %s: %s", how, base_message());
    assert_int_equal(number(result, "lost"), 2);
    assert_int_equal(number(result, "view"), 2);
    assert_int_equal(number(result, "size"), 2);
    json_decref(result);
}

static void test_survivors(void **state)
{
    (void)state;
    grieve_and_go_on("die");
    grieve_and_go_on("fail");
    grieve_and_go_on("vanish");
    grieve_and_go_on("stop");
}

static void grieve_and_end(const char *how, const char *words)
{
    json_t *result;

    assert_int_equal(run("grieve", 2, 0, json_pack("{s:s}", "how", how), &result),
                     BASE_ERR_PEER_LOST);
    assert_null(result);
    assert_int_equal(base_blamed(), 2);
    if (strstr(base_message(), words) == NULL)
        fail_msg("'%s' does not say '%s'", base_message(), words);
    if (strcmp(how, "stop") != 0 && strstr(base_message(), "about to") == NULL)
        fail_msg("'%s' does not have its last line", base_message());
}

static void test_last_words(void **state)
{
    (void)state;
    grieve_and_end("die", "(signal 9, SIGKILL)");
    grieve_and_end("crash", "(signal 6, SIGABRT)");
    grieve_and_end("vanish", "ended without a result");
    grieve_and_end("stop", "was silent for 2");
}

/* A failure that a worker tells of itself is the job's, with its code and its words alone. */
static void test_own_words(void **state)
{
    json_t *result;

    (void)state;
    assert_int_equal(run("grieve", 2, 0, json_pack("{s:s}", "how", "fail"), &result),
                     BASE_ERR_DATA);
    assert_null(result);
    assert_int_equal(base_blamed(), 2);
    assert_string_equal(base_message(), "no such thing");
}

/* Workers that end because another one died are not to blame, whatever the agent sees first. */
static void test_first_cause(void **state)
{
    json_t *result;

    (void)state;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(
            run("grieve", 4, 0, json_pack("{s:s, s:b}", "how", "die", "flee", 1), &result),
            BASE_ERR_PEER_LOST);
        if (base_blamed() != 2 || strstr(base_message(), "SIGKILL") == NULL)
            fail_msg("worker %u is blamed: %s", base_blamed(), base_message());
    }
}

static void test_unknown_program(void **state)
{
    json_t *result;

    (void)state;
    assert_int_equal(run("nap", 2, 0, NULL, &result), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "unknown program 'nap'"));
}

static void test_no_listening(void **state)
{
    struct cluster_setup setup = {.launch = {.workers = 1,
                                             .hosts = 2,
                                             .listens = true,
                                             .master = "192.0.2.1",
                                             .bind = "192.0.2.1",
                                             .source = "flags",
                                             .silence = 2,
                                             .gather = 30},
                                  .program = "share"};
    json_t *result;

    (void)state;
    assert_int_equal(cluster_agent_run(&setup, &result), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "token"));
}

/* The last one: signals are requests from now on. */
static void test_stop(void **state)
{
    json_t *result;

    (void)state;
    assert_int_equal(run("linger", 2, 0, NULL, &result), BASE_OK);
    assert_true(json_is_true(json_object_get(result, "stopped")));
    json_decref(result);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_dumpable),
        cmocka_unit_test(test_survivors),
        cmocka_unit_test(test_last_words),
        cmocka_unit_test(test_own_words),
        cmocka_unit_test(test_first_cause),
        cmocka_unit_test(test_unknown_program),
        cmocka_unit_test(test_no_listening),
        cmocka_unit_test(test_stop),
    };

    if (argc > 1 && strcmp(argv[1], "worker") == 0) {
        base_status st = cluster_worker_run(CLUSTER_CONTROL_FD, programs);

        if (st != BASE_OK)
            fprintf(stderr, "%s\n", base_message());
        return base_exit_code(st);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
