/* SPDX-License-Identifier: MIT
 *
 * The coordinator and workers that are lost: deaths, silence, suspicion, replacements.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "support/lab.h"

static void test_loss(void **state)
{
    struct cluster_message m;

    (void)state;
    lab_two_hosts(1, false);
    lab_lost(1, 3);
    assert_int_equal(lab_said(CLUSTER_LOST, 0, &m), 1); /* at once, to all hosts */
    assert_int_equal(lab_said(CLUSTER_LOST, 1, NULL), 1);
    assert_true(m.peer == 3 && m.view == 1);
    lab_pass_alive(3, 2);
    assert_int_equal(lab_said(CLUSTER_VIEW, 0, NULL), 1); /* not before it was reaped */
    lab_exited(1, 3, 0, 9);
    lab_assert_view(2, 3, 1, 2, 4);
    assert_int_equal(lab_said(CLUSTER_KILL, -1, NULL), 0); /* its agent knows */
}

/* What a program can go on with is the default: the job survives losses down to that. */
static void test_survives_by_default(void **state)
{
    (void)state;
    lab.least = 2;
    lab_two_hosts(0, false);
    lab_exited(0, 1, 0, 9); /* rank 0 is like any other */
    lab_assert_view(2, 3, 2, 3, 4);
    cluster_coordinator_gone(lab.c, 1, "closed its connection", lab.now);
    lab_collect();
    assert_int_equal(lab_said(CLUSTER_STOP, 0, NULL), 1); /* one is too few */
    lab_exited(0, 2, 1, 0);
    lab_assert_end(BASE_ERR_PEER_LOST, "worker 3 on host host-1 (pid 103) is lost with host 1");
}

static void test_least_is_not_there(void **state)
{
    (void)state;
    lab.least = 3;
    lab_begin(1, 0, false);
    lab_join(0, 0, 2);
    lab_exited(0, 1, 1, 0);
    lab_exited(0, 2, 1, 0);
    lab_assert_end(BASE_ERR_USAGE, "2 workers are too few: at least 3 are needed");
}

/* A worker that is to be killed may end by itself first: it was no failure of its own. */
static void test_evicted_and_faster(void **state)
{
    (void)state;
    lab.least = 1;
    lab_two_hosts(0, false);
    lab_suspect(1, 3, 2, 1);
    lab_pass_alive(1, 2);
    assert_int_equal(lab_said(CLUSTER_KILL, 0, NULL), 1);
    lab_exited(0, 2, 1, 0);
    lab_assert_view(2, 3, 1, 3, 4);
}

/* A worker that was killed is replaced on its host; one that gave up by itself is not. */
static void test_restart(void **state)
{
    struct cluster_message m;

    (void)state;
    lab_two_hosts_that_restart();
    lab_lost(1, 3);
    lab_exited(1, 3, 0, 9);
    assert_int_equal(lab_said(CLUSTER_JOB, 1, &m), 2);
    assert_true(m.id == 5 && m.workers == 1 && m.host == 1);
    lab_assert_view(2, 3, 1, 2, 4); /* the others do not wait for it */
    lab_exited(1, 4, 2, 0);
    lab_assert_view(3, 2, 1, 2);
    lab_exited(1, 5, 1, 0);
    assert_int_equal(lab_said(CLUSTER_JOB, 1, NULL), 2);
    assert_false(cluster_coordinator_over(lab.c));
}

/* A worker that has come and does not reach an older member is the one to leave, and its like would
 * not reach it either: it is not replaced. */
static void test_newcomer_astray(void **state)
{
    (void)state;
    lab_two_hosts_that_restart();
    lab_exited(1, 3, 0, 9);
    lab_ready(1, 5);
    for (uint32_t id = 1; id <= 4; id++)
        if (id != 3)
            lab_works_in(id > 2, id, 2);
    lab_assert_view(3, 4, 1, 2, 4, 5);
    lab_suspect(1, 5, 1, 3);
    assert_int_equal(lab_said(CLUSTER_KILL, 1, NULL), 1);
    assert_int_equal(lab_said(CLUSTER_KILL, 0, NULL), 0);
    lab_exited(1, 5, 0, 9);
    lab_assert_view(4, 3, 1, 2, 4);
    assert_int_equal(lab_said(CLUSTER_JOB, 1, NULL), 2); /* the first workers, and worker 5 */
}

static void test_restart_before_the_first_view(void **state)
{
    (void)state;
    lab.restarts = true;
    lab.least = 1;
    lab_begin(1, 0, true);
    lab_join(0, 0, 2);
    lab_exited(0, 1, 0, 9);
    lab_ready(0, 2);
    assert_int_equal(lab_said(CLUSTER_VIEW, 0, NULL), 0);
    lab_ready(0, 3);
    lab_assert_view(1, 2, 2, 3);
}

/* Replacements that are killed before they come to work: five in a row are enough. */
static void test_restart_gives_up(void **state)
{
    (void)state;
    lab_two_hosts_that_restart();
    for (uint32_t id = 3; id <= 8; id++) /* all but 4, a member that lives, from 5 on never were */
        if (id != 4)
            lab_exited(1, id, 0, 9);
    lab_ready(1, 9);
    lab_exited(1, 4, 0, 9);
    lab_assert_view(3, 3, 1, 2, 9); /* one has come: they are counted anew */
    for (uint32_t id = 10; id <= 13; id++)
        lab_exited(1, id, 0, 9);
    assert_int_equal(lab_said(CLUSTER_JOB, 1, NULL), 11); /* two in one, then 5 … 14 */
    lab_exited(1, 14, 0, 9);
    assert_int_equal(lab_said(CLUSTER_JOB, 1, NULL), 11);
}

static void test_two_losses_one_view(void **state)
{
    (void)state;
    lab_two_hosts(1, false);
    lab_lost(1, 3);
    lab_lost(0, 1);
    lab_exited(1, 3, 0, 9);
    assert_int_equal(lab_said(CLUSTER_VIEW, 0, NULL), 1);
    lab_exited(0, 1, 0, 9);
    lab_assert_view(2, 2, 2, 4);
}

static void test_loss_while_starting(void **state)
{
    (void)state;
    lab_begin(1, 1, false);
    lab_join(0, 0, 3);
    lab_ready(0, 1);
    lab_exited(0, 2, 127, 0);
    assert_int_equal(lab_said(CLUSTER_LOST, -1, NULL), 0); /* it was in no view */
    lab_ready(0, 3);
    lab_assert_view(1, 2, 1, 3);
}

/* What a dead worker had said may be read after its death was seen. */
static void test_ready_and_dead(void **state)
{
    (void)state;
    lab_two_hosts(1, true);
    lab_join(2, CLUSTER_ANY_HOST, 1);
    lab_lost(2, 5);
    lab_ready(2, 5);
    lab_exited(2, 5, 0, 9);
    assert_int_equal(lab_said(CLUSTER_VIEW, 0, NULL), 1);
    assert_int_equal(lab_hear(0, (struct cluster_message){.type = CLUSTER_READY, .id = 1}),
                     BASE_ERR_DATA); /* twice is still nonsense */
}

static void test_mutual_suspicion(void **state)
{
    struct cluster_message m;

    (void)state;
    lab_two_hosts(1, false);
    lab_suspect(1, 3, 2, 1);
    assert_int_equal(lab_said(CLUSTER_LOST, -1, NULL), 0);
    lab_suspect(0, 2, 3, 1);
    assert_int_equal(lab_said(CLUSTER_LOST, 0, &m), 1);
    assert_int_equal(m.peer, 3); /* the higher id leaves */
    assert_int_equal(lab_said(CLUSTER_KILL, 1, &m), 1);
    assert_int_equal(m.id, 3);
    lab_pass_alive(2, 2);
    assert_int_equal(lab_said(CLUSTER_VIEW, 0, NULL), 1);
    lab_exited(1, 3, 0, 9);
    lab_assert_view(2, 3, 1, 2, 4);
}

static void test_one_sided_suspicion(void **state)
{
    struct cluster_message m;

    (void)state;
    lab_two_hosts(1, false);
    lab_suspect(1, 3, 2, 1);
    lab_pass_alive(0.5, 2);
    assert_int_equal(lab_said(CLUSTER_LOST, -1, NULL), 0);
    lab_pass_alive(0.5, 2);
    assert_int_equal(lab_said(CLUSTER_LOST, 0, &m), 1);
    assert_int_equal(m.peer, 2); /* the accused */
    assert_int_equal(lab_said(CLUSTER_KILL, 0, NULL), 1);
}

static void test_accuser_dies(void **state)
{
    (void)state;
    lab_two_hosts(1, false);
    lab_suspect(1, 3, 2, 1);
    lab_lost(1, 3);
    lab_exited(1, 3, 0, 9);
    lab_pass_alive(3, 2);
    assert_int_equal(lab_said(CLUSTER_KILL, -1, NULL), 0); /* it was the accuser's own trouble */
    lab_assert_view(2, 3, 1, 2, 4);
}

static void test_old_suspicion(void **state)
{
    (void)state;
    lab_two_hosts(1, false);
    lab_lost(1, 3);
    lab_exited(1, 3, 0, 9);
    lab_suspect(0, 1, 2, 1); /* of view 1 */
    lab_suspect(0, 2, 1, 1);
    lab_suspect(0, 1, 3, 2); /* gone already */
    lab_suspect(0, 1, 1, 2); /* itself */
    lab_pass_alive(3, 2);
    assert_int_equal(lab_said(CLUSTER_KILL, -1, NULL), 0);
}

/* Of four workers three must say so, and only one is evicted. */
static void test_a_majority_convicts(void **state)
{
    struct cluster_message m;

    (void)state;
    lab_two_hosts(1, false);
    lab_accuse(0, 1, 3, 1);
    lab_accuse(0, 1, 3, 1); /* once more: the same word */
    lab_accuse(1, 3, 1, 1); /* back */
    lab_accuse(1, 3, 3, 1); /* itself */
    lab_accuse(0, 2, 3, 0); /* of an older view */
    lab_accuse(1, 4, 3, 1);
    lab_pass_alive(3, 2);
    assert_int_equal(lab_said(CLUSTER_KILL, -1, NULL), 0);
    lab_accuse(0, 2, 3, 1);
    assert_int_equal(lab_said(CLUSTER_KILL, 1, &m), 1);
    assert_int_equal(m.id, 3);
    assert_string_equal(m.text, "lies, say 3 of 4 workers");
    assert_int_equal(lab_said(CLUSTER_LOST, 0, &m), 1);
    assert_int_equal(m.peer, 3);
    lab_accuse(1, 4, 1, 1); /* of the view that ends */
    lab_exited(1, 3, 0, 9);
    lab_assert_view(2, 3, 1, 2, 4);
    lab_accuse(1, 4, 1, 2);
    lab_accuse(0, 2, 1, 1); /* no longer counts */
    assert_int_equal(lab_said(CLUSTER_KILL, 0, NULL), 0);
}

static void test_silent_host(void **state)
{
    (void)state;
    lab_two_hosts(1, false);
    lab_pass_alive(4.5, 1); /* host 1 says nothing */
    assert_int_equal(lab_said(CLUSTER_LOST, -1, NULL), 0);
    lab_pass_alive(1, 1);
    assert_int_equal(lab_said(CLUSTER_LOST, 0, NULL), 2);
    lab_assert_view(2, 2, 1, 2); /* no agent there could confirm it */
    assert_int_equal(lab_said(CLUSTER_VIEW, 1, NULL), 1);
}

static void test_silent_and_suspected(void **state)
{
    (void)state;
    lab_two_hosts(1, false);
    lab_pass_alive(1, 1);
    lab_suspect(0, 1, 3, 1);
    lab_pass_alive(1, 1); /* well below the five seconds of silence */
    lab_assert_view(2, 2, 1, 2);
}

static void test_closed_connection(void **state)
{
    (void)state;
    lab_two_hosts(1, false);
    cluster_coordinator_gone(lab.c, 1, "closed its connection", lab.now);
    lab_collect();
    assert_int_equal(lab_said(CLUSTER_LOST, 0, NULL), 2);
    lab_assert_view(2, 2, 1, 2);
}

static void test_own_sleep(void **state)
{
    (void)state;
    lab_two_hosts(1, false);
    lab.now += 100; /* the coordinator itself was stopped */
    cluster_coordinator_tick(lab.c, lab.now);
    lab_collect();
    assert_int_equal(lab_said(CLUSTER_LOST, -1, NULL), 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, lab_finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_loss),
        TEST(test_survives_by_default),
        TEST(test_least_is_not_there),
        TEST(test_evicted_and_faster),
        TEST(test_restart),
        TEST(test_newcomer_astray),
        TEST(test_restart_before_the_first_view),
        TEST(test_restart_gives_up),
        TEST(test_two_losses_one_view),
        TEST(test_loss_while_starting),
        TEST(test_ready_and_dead),
        TEST(test_mutual_suspicion),
        TEST(test_one_sided_suspicion),
        TEST(test_accuser_dies),
        TEST(test_old_suspicion),
        TEST(test_a_majority_convicts),
        TEST(test_silent_host),
        TEST(test_silent_and_suspected),
        TEST(test_closed_connection),
        TEST(test_own_sleep),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
