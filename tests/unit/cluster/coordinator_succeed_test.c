/* SPDX-License-Identifier: MIT
 *
 * From one coordinator to the next: the state that agents keep, a successor that begins with it and
 * with their reports, and who may go on after a loss of hosts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "cluster/report.h"
#include "support/lab.h"

enum { FIRST_VIEW = CLUSTER_VIEWS_OF_A_TERM + 1 }; /* of term 1 */

/* Hosts of one worker each, all in view 1. */
static void begin(int hosts)
{
    lab_begin(hosts, 1, true);
    for (int i = 0; i < hosts; i++)
        lab_join(i, (uint32_t)i, 1);
    for (int i = 0; i < hosts; i++)
        lab_ready(i, (uint32_t)i + 1);
    for (int i = 0; i < hosts; i++)
        lab_works_in(i, (uint32_t)i + 1, 1); /* it is in use */
    assert_int_equal(lab_said(CLUSTER_VIEW, 0, NULL), 1);
}

static void read_state(struct cluster_state *state)
{
    assert_int_equal(cluster_state_from_json(lab.state, state), BASE_OK);
}

/* Host 0 is lost; `own` coordinates, in term 1. */
static void succeed(uint32_t own)
{
    static struct cluster_state state;

    read_state(&state);
    cluster_coordinator_free(lab.c);
    lab.count = 0;
    lab.own = (int)own;
    lab.c = cluster_coordinator_succeed(&state, lab.check, own, 1, lab.now);
    cluster_state_fini(&state);
}

static struct cluster_reported worker(uint32_t id)
{
    return (struct cluster_reported){.id = id,
                                     .view = 1,
                                     .pid = 100 + (int)id,
                                     .slot = (uint16_t)id,
                                     .live = true,
                                     .ready = true};
}

static void report_workers(uint32_t host, int count, const struct cluster_reported *workers)
{
    static struct cluster_report r;

    r = (struct cluster_report){.count = count};
    memcpy(r.workers, workers, (size_t)count * sizeof *workers);
    for (int i = 0; i < count; i++)
        if (workers[i].done && r.result_id == 0) {
            r.result_id = workers[i].id;
            r.result = json_pack("{s:i}", "of", (int)workers[i].id);
        }
    lab_tell((int)host, (struct cluster_message){.type = CLUSTER_REPORT,
                                                 .host = host,
                                                 .term = 1,
                                                 .body = cluster_report_to_json(&r)});
    cluster_report_fini(&r);
}

static void report(uint32_t host, uint32_t id)
{
    struct cluster_reported w = worker(id);

    report_workers(host, 1, &w);
}

static void test_state(void **unused)
{
    static struct cluster_state state;
    int sent;

    (void)unused;
    begin(3);
    assert_int_equal(lab_said(CLUSTER_STATE, 0, NULL), 0); /* its own host has it */
    sent = lab_said(CLUSTER_STATE, 1, NULL);
    assert_true(sent > 0);
    assert_int_equal(lab_said(CLUSTER_STATE, 2, NULL), sent - 1); /* it joined last */
    read_state(&state);
    assert_true(state.going_on && !state.stopping && state.term == 0);
    assert_true(state.view.number == 1 && state.view.size == 3 && state.last_id == 3);
    assert_true(state.host_count == 3 && state.hosts[2].here && state.hosts[2].port == 4711);
    assert_string_equal(state.name, "abc");
    cluster_state_fini(&state);
    lab_pass_alive(3, 3); /* heartbeats are no news */
    assert_int_equal(lab_said(CLUSTER_STATE, 1, NULL), sent);
    lab_result(2, 3);
    assert_int_equal(lab_said(CLUSTER_STATE, 1, NULL), sent + 1);
    read_state(&state);
    assert_true(state.done == 4 && state.result_id == 3 && json_is_object(state.result));
    cluster_state_fini(&state);
}

/* An agent that has a view has the state with it, because the state comes first on every link. */
static void test_state_before_view(void **unused)
{
    int stated = -1, viewed = -1;

    (void)unused;
    begin(2);
    for (int i = 0; i < lab.count; i++) {
        if (lab.said[i].link == 1 && lab.said[i].m.type == CLUSTER_STATE && viewed < 0)
            stated = i;
        if (lab.said[i].link == 1 && lab.said[i].m.type == CLUSTER_VIEW)
            viewed = i;
    }
    assert_true(stated >= 0 && stated < viewed);
}

static void test_alone(void **unused)
{
    (void)unused;
    begin(1);
    assert_null(lab.state); /* no other agent would keep it */
}

static void test_successor(void **unused)
{
    struct cluster_message m;

    (void)unused;
    begin(3);
    succeed(1);
    assert_true(cluster_coordinator_lead(lab.c, 2, 2));
    assert_false(cluster_coordinator_lead(lab.c, 2, 2)); /* once is enough */
    lab_collect();
    assert_int_equal(lab_said(CLUSTER_LEAD, 2, &m), 1);
    assert_true(m.host == 1 && m.term == 1);
    report(1, 2);
    assert_int_equal(lab_said(CLUSTER_VIEW, -1, NULL), 0);
    report(2, 3);
    assert_true(lab_said(CLUSTER_LOST, 2, &m) >= 1);
    assert_true(m.peer == 1 && m.view == 1);
    lab_assert_view(FIRST_VIEW, 2, 2, 3);
    lab_works_in(1, 2, FIRST_VIEW);
    lab_works_in(2, 3, FIRST_VIEW);
    lab_join(5, CLUSTER_ANY_HOST, 1); /* ids go on */
    lab_ready(5, 4);
    lab_assert_view(FIRST_VIEW + 1, 3, 2, 3, 4);
    lab_result_of(1, 2, FIRST_VIEW + 1);
    lab_result_of(2, 3, FIRST_VIEW + 1);
    lab_result_of(5, 4, FIRST_VIEW + 1);
    for (int link = 1; link < 6; link++)
        if (link < 3 || link == 5)
            lab_exited(link, link < 3 ? (uint32_t)link + 1 : 4, 0, 0);
    assert_true(cluster_coordinator_over(lab.c));
    assert_int_equal(lab_said(CLUSTER_END, 2, &m), 1);
    assert_int_equal(m.code, BASE_OK);
}

/* Agents' reports count more than the state: a worker that died meanwhile, one that the state did
 * not know, one that hangs and must be reaped first. */
static void test_reports(void **unused)
{
    struct cluster_reported of_two[] = {worker(3), worker(9), worker(8)};
    struct cluster_message m;

    (void)unused;
    begin(4);
    succeed(1);
    of_two[1].ready = false;
    of_two[2].lost = true;
    report(1, 2);
    report_workers(2, 3, of_two);
    report_workers(3, 0, of_two); /* worker 4 is gone */
    assert_true(lab_said(CLUSTER_LOST, 2, &m) >= 1);
    assert_int_equal(lab_said(CLUSTER_VIEW, -1, NULL), 0); /* worker 8 is not reaped yet */
    lab_exited(2, 8, 0, 9);
    lab_assert_view(FIRST_VIEW, 2, 2, 3);
    for (uint32_t id = 2; id <= 3; id++)
        lab_works_in((int)id - 1, id, FIRST_VIEW);
    lab_ready(2, 9);
    lab_assert_view(FIRST_VIEW + 1, 3, 2, 3, 9);
    lab_join(5, CLUSTER_ANY_HOST, 1);
    assert_int_equal(lab_said(CLUSTER_JOB, 5, &m), 1);
    assert_int_equal(m.id, 10);
}

/* Results that were given are kept, by the state and by the agents. */
static void test_results(void **unused)
{
    struct cluster_reported done = worker(3), also = worker(2);

    (void)unused;
    begin(3);
    lab_result(0, 1);
    succeed(1);
    done.done = true;
    done.live = done.ready = false;
    also.done = true;
    report_workers(2, 1, &done);
    report_workers(1, 1, &also);
    assert_false(cluster_coordinator_over(lab.c));
    lab_exited(1, 2, 0, 0);
    assert_true(cluster_coordinator_over(lab.c));
    assert_non_null(cluster_coordinator_result(lab.c)); /* worker 1's, of the lost host */
    assert_null(json_object_get(cluster_coordinator_result(lab.c), "of"));
    lab_assert_end(BASE_OK, "");
}

/* A host that does not report is lost after a moment; one that comes too late is sent home. */
static void test_no_report(void **unused)
{
    struct cluster_message m;

    (void)unused;
    begin(4);
    succeed(1);
    assert_true(cluster_coordinator_seeks(lab.c, 0) && cluster_coordinator_seeks(lab.c, 3));
    assert_false(cluster_coordinator_seeks(lab.c, 1));
    cluster_coordinator_dead(lab.c, 0, lab.now);
    assert_false(cluster_coordinator_seeks(lab.c, 0));
    report(1, 2);
    report(2, 3);
    assert_int_equal(lab_said(CLUSTER_VIEW, -1, NULL), 0);
    for (int i = 0; i < 25; i++) {
        lab.now += 0.1;
        for (int link = 1; link <= 2; link++)
            lab_tell(link, (struct cluster_message){.type = CLUSTER_HEARTBEAT, .load.step = -1});
        cluster_coordinator_tick(lab.c, lab.now);
    }
    lab_collect();
    lab_assert_view(FIRST_VIEW, 2, 2, 3);
    report(3, 4);
    assert_int_equal(lab_said(CLUSTER_END, 3, &m), 1);
    assert_int_equal(m.code, BASE_ERR_PEER_LOST);
}

static void test_stop_goes_on(void **unused)
{
    (void)unused;
    begin(3);
    lab_tell(0, (struct cluster_message){.type = CLUSTER_STOP, .text = "SIGINT"});
    succeed(1);
    report(1, 2);
    report(2, 3);
    assert_int_equal(lab_said(CLUSTER_STOP, 2, NULL), 1);
    lab_finish(unused);
    begin(3);
    succeed(1);
    report(1, 2);
    lab_tell(1, (struct cluster_message){.type = CLUSTER_STOP, .text = "SIGINT"});
    report(2, 3);
    assert_int_equal(lab_said(CLUSTER_STOP, 2, NULL), 1);
}

/* Silent hosts may be alive and go on by themselves: with fewer than half of them it does not. */
static void test_too_few(void **unused)
{
    struct cluster_message m;

    (void)unused;
    begin(5);
    for (int link = 2; link < 5; link++) /* one after the other: views that no worker came to … */
        cluster_coordinator_gone(lab.c, link, "was silent", lab.now);
    assert_true(cluster_coordinator_seeks(lab.c, 3));
    lab_pass_alive(1, 2);
    assert_true(lab_said(CLUSTER_VIEW, 0, &m) >= 1);
    assert_true(m.members.size > 2); /* … have no say in it */
    assert_int_equal(lab_said(CLUSTER_STOP, 0, NULL), 0);
    lab_pass_alive(2, 2);
    assert_int_equal(lab_said(CLUSTER_STOP, 0, NULL), 1);
    lab_exited(0, 1, 1, 0);
    lab_exited(1, 2, 1, 0);
    lab_assert_end(BASE_ERR_PEER_LOST, "hears 2 of 5 hosts");
}

/* Hosts that are cut off together are lost one after the other. Those that were not heard of late
 * do not help to make a view; but as long as no view is due they may be quiet for `silence`. */
static void test_quiet_hosts(void **unused)
{
    (void)unused;
    begin(4);
    for (int i = 0; i < 15; i++) { /* 1.5 s without a word of hosts 1 to 3 */
        lab.now += 0.1;
        lab_tell(0, (struct cluster_message){.type = CLUSTER_HEARTBEAT, .load.step = -1});
        cluster_coordinator_tick(lab.c, lab.now);
    }
    lab_collect();
    assert_int_equal(lab_said(CLUSTER_STOP, 0, NULL), 0);
    cluster_coordinator_gone(lab.c, 1, "was lost", lab.now);
    lab_collect();
    assert_int_equal(lab_said(CLUSTER_VIEW, 0, NULL), 1); /* the first */
    lab_tell(2, (struct cluster_message){.type = CLUSTER_HEARTBEAT, .load.step = -1});
    lab_pass_alive(0.2, 0);
    lab_assert_view(2, 3, 1, 3, 4);
}

/* A coordinator that was asleep reads what came meanwhile before its clock ticks: what it finds is
 * old, and the hosts that said it may have left. */
static void test_old_words(void **unused)
{
    (void)unused;
    begin(3);
    lab_pass_alive(2, 3);
    lab.now += 20;
    cluster_coordinator_gone(lab.c, 1, "closed its connection", lab.now);
    lab_tell(2, (struct cluster_message){.type = CLUSTER_HEARTBEAT, .load.step = -1});
    lab_collect();
    assert_int_equal(lab_said(CLUSTER_VIEW, 0, NULL), 1); /* the first */
    lab_pass_alive(1.5, 3);                               /* host 2 is there after all */
    lab_assert_view(2, 2, 1, 3);
}

/* One that comes has no say for the lost host whose place is free: that one may be alive. */
static void test_no_heir_of_a_vote(void **unused)
{
    (void)unused;
    begin(1);
    for (int i = 1; i < 5; i++) {
        lab_join(i, CLUSTER_ANY_HOST, 1);
        lab_ready(i, (uint32_t)i + 1);
        for (int j = 0; j <= i; j++)
            lab_works_in(j, (uint32_t)j + 1, (uint32_t)i + 1);
    }
    lab_assert_view(5, 5, 1, 2, 3, 4, 5);
    for (int link = 2; link < 5; link++)
        cluster_coordinator_gone(lab.c, link, "was silent", lab.now);
    lab_join(5, CLUSTER_ANY_HOST, 1);
    lab_ready(5, 6);
    lab_pass_alive(3, 2);
    assert_int_equal(lab_said(CLUSTER_STOP, 0, NULL), 1);
}

static void test_half_is_enough(void **unused)
{
    (void)unused;
    begin(4);
    cluster_coordinator_gone(lab.c, 2, "was silent", lab.now);
    cluster_coordinator_gone(lab.c, 3, "was silent", lab.now);
    lab_collect();
    lab_assert_view(3, 2, 1, 2);
}

static void test_dead_do_not_count(void **unused)
{
    (void)unused;
    begin(5);
    for (int link = 2; link < 5; link++)
        cluster_coordinator_gone(lab.c, link, "was silent", lab.now);
    cluster_coordinator_dead(lab.c, 4, lab.now);
    lab_collect();
    lab_assert_view(4, 2, 1, 2);
}

/* Hosts that left a coordinator which had been asleep may have found another one, and be done. */
static void test_deserted_are_not_dead(void **unused)
{
    (void)unused;
    begin(5);
    lab.now += 20;
    for (int link = 2; link < 5; link++)
        cluster_coordinator_gone(lab.c, link, "closed its connection", lab.now);
    for (int host = 2; host < 5; host++)
        cluster_coordinator_dead(lab.c, host, lab.now);
    lab_collect();
    assert_int_equal(lab_said(CLUSTER_STOP, 0, NULL), 0); /* it waits for news, and … */
    for (int i = 0; i < 40; i++) {
        lab.now += 0.1;
        lab_tell(1, (struct cluster_message){.type = CLUSTER_HEARTBEAT, .load.step = -1});
        cluster_coordinator_tick(lab.c, lab.now);
    }
    lab_collect();
    assert_int_equal(lab_said(CLUSTER_STOP, 0, NULL), 1); /* … fails */
}

/* The others have a coordinator of their own. */
static void test_deposed(void **unused)
{
    struct cluster_message m;

    (void)unused;
    begin(2);
    lab_tell(7, (struct cluster_message){.type = CLUSTER_LEAD, .host = 1, .term = 0}); /* older */
    assert_int_equal(lab_said(CLUSTER_STOP, 0, NULL), 0);
    lab_tell(7, (struct cluster_message){.type = CLUSTER_ASK, .host = 1, .term = 1});
    assert_int_equal(lab_said(CLUSTER_VOTE, 7, &m), 1);
    assert_int_equal(m.code, 1); /* it is there */
    lab_tell(7, (struct cluster_message){.type = CLUSTER_LEAD, .host = 1, .term = 1});
    assert_int_equal(lab_said(CLUSTER_STOP, 0, NULL), 1);
}

static base_status any_setting(const json_t *job, const json_t *settings)
{
    (void)job;
    (void)settings;
    return BASE_OK;
}

/* A successor knows the settings by the state, and a change that only one agent has heard of by
 * that agent; the numbers of its own changes are higher. */
static void test_settings_go_on(void **unused)
{
    struct cluster_message m;
    uint32_t number;

    (void)unused;
    lab.check = any_setting;
    begin(3);
    assert_int_equal(cluster_coordinator_set(lab.c, "k", "4", lab.now, &number), BASE_OK);
    assert_int_equal(number, 1);
    lab_collect();
    assert_int_equal(lab_said(CLUSTER_SETTINGS, 2, &m), 1);
    succeed(1);
    assert_int_equal(cluster_coordinator_set(lab.c, "j", "1", lab.now, &number), BASE_ERR_USAGE);
    assert_true(cluster_coordinator_lead(lab.c, 2, 2));
    report(1, 2);
    report(2, 3);
    lab_tell(2, (struct cluster_message){
                    .type = CLUSTER_SETTINGS, .serial = 2, .body = json_pack("{s:s}", "k", "8")});
    assert_true(lab_said(CLUSTER_SETTINGS, 1, &m) >= 1);
    assert_int_equal(m.serial, 2);
    assert_int_equal(cluster_coordinator_set(lab.c, "j", "1", lab.now, &number), BASE_OK);
    assert_int_equal(number, CLUSTER_VIEWS_OF_A_TERM + 1);
    lab_collect();
    assert_true(lab_said(CLUSTER_SETTINGS, 2, &m) >= 2);
    assert_int_equal(m.serial, number);
}

static void test_nonsense(void **unused)
{
    struct cluster_reported stolen = worker(3);

    (void)unused;
    begin(3);
    succeed(1);
    assert_int_equal(lab_hear(1, (struct cluster_message){.type = CLUSTER_REPORT,
                                                          .host = 1,
                                                          .term = 1,
                                                          .body = json_object()}),
                     BASE_ERR_DATA);
    assert_false(cluster_coordinator_knows(lab.c, 1));
    {
        struct cluster_report r = {.count = 1, .workers = {stolen}};

        assert_int_equal(lab_hear(1, (struct cluster_message){.type = CLUSTER_REPORT,
                                                              .host = 1,
                                                              .term = 1,
                                                              .body = cluster_report_to_json(&r)}),
                         BASE_ERR_DATA);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_state, lab_finish),
        cmocka_unit_test_teardown(test_state_before_view, lab_finish),
        cmocka_unit_test_teardown(test_alone, lab_finish),
        cmocka_unit_test_teardown(test_successor, lab_finish),
        cmocka_unit_test_teardown(test_reports, lab_finish),
        cmocka_unit_test_teardown(test_results, lab_finish),
        cmocka_unit_test_teardown(test_no_report, lab_finish),
        cmocka_unit_test_teardown(test_stop_goes_on, lab_finish),
        cmocka_unit_test_teardown(test_too_few, lab_finish),
        cmocka_unit_test_teardown(test_quiet_hosts, lab_finish),
        cmocka_unit_test_teardown(test_old_words, lab_finish),
        cmocka_unit_test_teardown(test_no_heir_of_a_vote, lab_finish),
        cmocka_unit_test_teardown(test_half_is_enough, lab_finish),
        cmocka_unit_test_teardown(test_dead_do_not_count, lab_finish),
        cmocka_unit_test_teardown(test_deserted_are_not_dead, lab_finish),
        cmocka_unit_test_teardown(test_deposed, lab_finish),
        cmocka_unit_test_teardown(test_settings_go_on, lab_finish),
        cmocka_unit_test_teardown(test_nonsense, lab_finish),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
