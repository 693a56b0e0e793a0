/* SPDX-License-Identifier: MIT
 *
 * The coordinator, driven by messages and a made-up clock: gathering, views, losses, suspicion,
 * joining, ends. What it says is collected here, link by link.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "cluster/coordinator.h"

enum { MAX_SAID = 512 };

struct lab {
    struct cluster_coordinator *c;
    double now;
    struct {
        int link;
        struct cluster_message m;
    } said[MAX_SAID];
    int count;
};

static struct lab lab;

static void collect(void)
{
    int link;
    struct cluster_message m;

    while (cluster_coordinator_next(lab.c, &link, &m)) {
        cluster_message_fini(&m);
        if (m.type == CLUSTER_HEARTBEAT)
            continue;
        assert_true(lab.count < MAX_SAID);
        lab.said[lab.count].link = link;
        lab.said[lab.count++].m = m;
    }
}

static bool restarts; /* of the next job */

static void begin(int hosts, int min_workers, bool joins)
{
    json_t *job = json_pack("{s:i, s:s, s:{s:f, s:i}}", "bytes", 8, "mode", "fast", "settings",
                            "lr", 0.5, "seed", 1);
    struct cluster_coordinator_setup setup = {.name = "abc",
                                              .program = "ping",
                                              .job = job,
                                              .hosts = hosts,
                                              .min_workers = min_workers,
                                              .joins = joins,
                                              .restarts = restarts,
                                              .silence = 5,
                                              .gather = 60};

    lab.now = 1000;
    lab.count = 0;
    lab.c = cluster_coordinator_new(&setup, lab.now);
    json_decref(job);
}

static int finish(void **state)
{
    (void)state;
    cluster_coordinator_free(lab.c);
    lab.c = NULL;
    return 0;
}

static base_status hear(int link, struct cluster_message m)
{
    base_status st = cluster_coordinator_hear(lab.c, link, &m, lab.now);

    cluster_message_fini(&m);
    collect();
    return st;
}

static void tell(int link, struct cluster_message m)
{
    assert_int_equal(hear(link, m), BASE_OK);
}

static void join_with(int link, uint32_t host, int workers, json_t *body)
{
    struct cluster_message m = {.type = CLUSTER_JOIN,
                                .host = host,
                                .workers = workers,
                                .version = CLUSTER_PROTOCOL,
                                .address = "127.0.0.1",
                                .body = body};

    snprintf(m.text, sizeof m.text, "host-%d", link);
    tell(link, m);
}

static void join(int link, uint32_t host, int workers)
{
    join_with(link, host, workers, NULL);
}

static void ready(int link, uint32_t id)
{
    tell(link, (struct cluster_message){.type = CLUSTER_READY,
                                        .id = id,
                                        .slot = (uint16_t)(id % COMM_MAX_WORKERS),
                                        .pid = 100 + (int)id});
}

static void lost(int link, uint32_t id)
{
    struct cluster_message m = {.type = CLUSTER_LOST, .peer = id};

    cluster_message_text(&m, "was killed");
    tell(link, m);
}

static void exited(int link, uint32_t id, int code, int signal)
{
    struct cluster_message m = {
        .type = CLUSTER_EXITED, .id = id, .pid = 100 + (int)id, .code = code, .signal = signal};

    cluster_message_text(&m, "first line\nlast line");
    tell(link, m);
}

static void suspect(int link, uint32_t id, uint32_t peer, uint32_t view)
{
    tell(link,
         (struct cluster_message){.type = CLUSTER_SUSPECT, .id = id, .peer = peer, .view = view});
}

static void result_of(int link, uint32_t id, uint32_t view)
{
    tell(link, (struct cluster_message){.type = CLUSTER_RESULT,
                                        .id = id,
                                        .view = view,
                                        .body = json_pack("{s:I}", "from", (json_int_t)id)});
}

static int said(enum cluster_type type, int link, struct cluster_message *last_p);

static void result(int link, uint32_t id) /* in the view that there is */
{
    struct cluster_message m = {0};

    said(CLUSTER_VIEW, link, &m);
    result_of(link, id, m.members.number);
}

static void works_in(int link, uint32_t id, uint32_t view)
{
    tell(link, (struct cluster_message){
                   .type = CLUSTER_HEARTBEAT, .id = id, .view = view, .load.step = -1});
}

static void pass_alive(double seconds, int hosts) /* with everybody's heartbeats */
{
    for (double end = lab.now + seconds; lab.now < end;) {
        lab.now += 0.1;
        for (int i = 0; i < hosts; i++)
            tell(i, (struct cluster_message){.type = CLUSTER_HEARTBEAT, .load.step = -1});
        cluster_coordinator_tick(lab.c, lab.now);
        collect();
    }
}

/* How many of that type went to `link` (-1: any); the last of them. */
static int said(enum cluster_type type, int link, struct cluster_message *last_p)
{
    int count = 0;

    for (int i = 0; i < lab.count; i++)
        if (lab.said[i].m.type == type && (link < 0 || lab.said[i].link == link)) {
            if (last_p != NULL)
                *last_p = lab.said[i].m;
            count++;
        }
    return count;
}

static void assert_view(uint32_t number, int size, ...)
{
    struct cluster_message m;
    va_list ids;

    assert_true(said(CLUSTER_VIEW, 0, &m) > 0);
    assert_int_equal(m.members.number, number);
    assert_int_equal(m.members.size, size);
    va_start(ids, size);
    for (int i = 0; i < size; i++)
        assert_int_equal(m.members.members[i].id, va_arg(ids, int));
    va_end(ids);
}

static void assert_end(base_code code, const char *text)
{
    struct cluster_message m;

    assert_int_equal(said(CLUSTER_END, 0, &m), 1);
    assert_int_equal(m.code, code);
    if (strstr(m.text, text) == NULL)
        fail_msg("'%s' does not say '%s'", m.text, text);
    assert_true(cluster_coordinator_over(lab.c));
}

/* Two hosts of two workers, all in view 1. */
static void two_hosts(int min_workers, bool joins)
{
    begin(2, min_workers, joins);
    join(1, 1, 2);
    assert_int_equal(said(CLUSTER_JOB, -1, NULL), 0);
    join(0, 0, 2);
    for (uint32_t id = 1; id <= 4; id++)
        ready(id <= 2 ? 0 : 1, id);
}

static void test_start(void **state)
{
    struct cluster_message m;

    (void)state;
    two_hosts(1, false);
    assert_int_equal(said(CLUSTER_JOB, 0, &m), 1);
    assert_true(m.id == 1 && m.workers == 2 && m.host == 0); /* in the order of hosts */
    assert_int_equal(said(CLUSTER_JOB, 1, &m), 1);
    assert_true(m.id == 3 && m.workers == 2 && m.host == 1);
    assert_view(1, 4, 1, 2, 3, 4);
    assert_int_equal(said(CLUSTER_VIEW, 1, NULL), 1);
}

static void test_gathering_ends(void **state)
{
    (void)state;
    begin(3, 1, false);
    join(0, 0, 1);
    pass_alive(59, 1);
    assert_false(cluster_coordinator_over(lab.c));
    pass_alive(2, 1);
    assert_end(BASE_ERR_TIMEOUT, "host 1, 2 of 3 did not come");
}

static void test_loss(void **state)
{
    struct cluster_message m;

    (void)state;
    two_hosts(1, false);
    lost(1, 3);
    assert_int_equal(said(CLUSTER_LOST, 0, &m), 1); /* at once, to everyone */
    assert_int_equal(said(CLUSTER_LOST, 1, NULL), 1);
    assert_true(m.peer == 3 && m.view == 1);
    pass_alive(3, 2);
    assert_int_equal(said(CLUSTER_VIEW, 0, NULL), 1); /* not before it was reaped */
    exited(1, 3, 0, 9);
    assert_view(2, 3, 1, 2, 4);
    assert_int_equal(said(CLUSTER_KILL, -1, NULL), 0); /* its agent knows */
}

static void two_hosts_that_restart(void)
{
    restarts = true;
    two_hosts(0, true);
    restarts = false;
}

/* Whoever was killed is replaced on its host, whoever gave up by itself is not. */
static void test_restart(void **state)
{
    struct cluster_message m;

    (void)state;
    two_hosts_that_restart();
    lost(1, 3);
    exited(1, 3, 0, 9);
    assert_int_equal(said(CLUSTER_JOB, 1, &m), 2);
    assert_true(m.id == 5 && m.workers == 1 && m.host == 1);
    assert_view(2, 3, 1, 2, 4); /* nobody waits for it */
    exited(1, 4, 2, 0);
    assert_view(3, 2, 1, 2);
    exited(1, 5, 1, 0);
    assert_int_equal(said(CLUSTER_JOB, 1, NULL), 2);
    assert_false(cluster_coordinator_over(lab.c));
}

static void test_restart_before_the_first_view(void **state)
{
    (void)state;
    restarts = true;
    begin(1, 0, true);
    restarts = false;
    join(0, 0, 2);
    exited(0, 1, 0, 9);
    ready(0, 2);
    assert_int_equal(said(CLUSTER_VIEW, 0, NULL), 0);
    ready(0, 3);
    assert_view(1, 2, 2, 3);
}

/* A replacement that is stopped before it has spoken is not waited for when the work is done. */
static void test_too_late(void **state)
{
    struct cluster_message m;

    (void)state;
    two_hosts_that_restart();
    exited(1, 3, 0, 9);
    result(0, 1);
    result(0, 2);
    result(1, 4);
    assert_int_equal(said(CLUSTER_KILL, 1, &m), 1);
    assert_int_equal(m.id, 5);
    exited(0, 1, 0, 0);
    exited(0, 2, 0, 0);
    exited(1, 4, 0, 0);
    assert_false(cluster_coordinator_over(lab.c));
    exited(1, 5, 0, 9);
    assert_int_equal(said(CLUSTER_JOB, 1, NULL), 2); /* and not replaced again */
    assert_end(BASE_OK, "");
}

/* Work that is done in a view while the next one is published: who is new waits there in vain, and
 * who was interrupted goes on without those who are done. */
static void test_done_in_the_former_view(void **state)
{
    struct cluster_message m;

    (void)state;
    two_hosts_that_restart();
    exited(1, 3, 0, 9);
    works_in(0, 1, 2);
    works_in(0, 2, 2);
    works_in(1, 4, 2);
    ready(1, 5);
    assert_view(3, 4, 1, 2, 4, 5);
    result_of(0, 1, 2);
    assert_view(4, 3, 2, 4, 5);
    result_of(0, 2, 2);
    assert_view(5, 2, 4, 5);
    assert_int_equal(said(CLUSTER_KILL, 1, NULL), 0);
    result_of(1, 4, 2);
    assert_int_equal(said(CLUSTER_KILL, 1, &m), 1);
    assert_int_equal(m.id, 5);
    for (uint32_t id = 1; id <= 5; id++)
        if (id != 3)
            exited(id > 2, id, 0, id == 5 ? 9 : 0);
    assert_end(BASE_OK, "");
}

/* Replacements that are killed before they come to work: five in a row are enough. */
static void test_restart_gives_up(void **state)
{
    (void)state;
    two_hosts_that_restart();
    for (uint32_t id = 3; id <= 8; id++) /* all but 4, a member that lives, from 5 on never were */
        if (id != 4)
            exited(1, id, 0, 9);
    ready(1, 9);
    exited(1, 4, 0, 9);
    assert_view(3, 3, 1, 2, 9); /* one has come: they are counted anew */
    for (uint32_t id = 10; id <= 13; id++)
        exited(1, id, 0, 9);
    assert_int_equal(said(CLUSTER_JOB, 1, NULL), 11); /* two in one, then 5 … 14 */
    exited(1, 14, 0, 9);
    assert_int_equal(said(CLUSTER_JOB, 1, NULL), 11);
}

/* A loss that the job has survived is not what it ends of. */
static void test_blame(void **state)
{
    (void)state;
    two_hosts(3, false);
    exited(1, 3, 0, 9);
    assert_view(2, 3, 1, 2, 4);
    exited(1, 4, 3, 0);
    exited(0, 1, 1, 0);
    exited(0, 2, 1, 0);
    assert_end(BASE_ERR_PEER_LOST, "worker 4 on host host-1 (pid 104) ended with a failure");
}

static void test_two_losses_one_view(void **state)
{
    (void)state;
    two_hosts(1, false);
    lost(1, 3);
    lost(0, 1);
    exited(1, 3, 0, 9);
    assert_int_equal(said(CLUSTER_VIEW, 0, NULL), 1);
    exited(0, 1, 0, 9);
    assert_view(2, 2, 2, 4);
}

static void test_loss_while_starting(void **state)
{
    (void)state;
    begin(1, 1, false);
    join(0, 0, 3);
    ready(0, 1);
    exited(0, 2, 127, 0);
    assert_int_equal(said(CLUSTER_LOST, -1, NULL), 0); /* it was in no view */
    ready(0, 3);
    assert_view(1, 2, 1, 3);
}

/* A loss that the others got over is not what a later failure is blamed on. */
static void test_blames_the_last_cause(void **state)
{
    (void)state;
    two_hosts(2, false);
    lost(1, 4);
    exited(1, 4, 0, 9);
    assert_view(2, 3, 1, 2, 3);
    lost(0, 2);
    lost(1, 3);
    exited(0, 2, 0, 11);
    exited(1, 3, 0, 9);
    exited(0, 1, 1, 0);
    assert_end(BASE_ERR_PEER_LOST, "worker 2 on host host-0 (pid 102) was killed (signal 11");
}

/* What a dead worker had said may be read after its death was seen. */
static void test_ready_and_dead(void **state)
{
    (void)state;
    two_hosts(1, true);
    join(2, CLUSTER_ANY_HOST, 1);
    lost(2, 5);
    ready(2, 5);
    exited(2, 5, 0, 9);
    assert_int_equal(said(CLUSTER_VIEW, 0, NULL), 1);
    assert_int_equal(hear(0, (struct cluster_message){.type = CLUSTER_READY, .id = 1}),
                     BASE_ERR_DATA); /* twice is still nonsense */
}

static void test_too_few(void **state)
{
    struct cluster_message m;

    (void)state;
    two_hosts(0, false);
    lost(1, 4);
    assert_int_equal(said(CLUSTER_STOP, 0, &m), 1);
    assert_true(m.code != 0);
    exited(1, 4, 0, 9);
    for (uint32_t id = 1; id <= 3; id++) {
        assert_false(cluster_coordinator_over(lab.c));
        exited(id <= 2 ? 0 : 1, id, 1, 0);
    }
    assert_end(BASE_ERR_PEER_LOST, "worker 4 on host host-1 (pid 104) was killed (signal 9, "
                                   "SIGKILL); its last lines:\nfirst line\nlast line");
    assert_int_equal(said(CLUSTER_VIEW, 0, NULL), 1);
    assert_null(cluster_coordinator_result(lab.c));
}

static void test_failed_workers_may_save(void **state)
{
    (void)state;
    two_hosts(0, false);
    exited(0, 1, 3, 0);
    pass_alive(29, 2);
    assert_false(cluster_coordinator_over(lab.c));
    pass_alive(2, 2);
    assert_end(BASE_ERR_PEER_LOST,
               "worker 1 on host host-0 (pid 101) ended with a failure (exit code 3)");
}

static void test_mutual_suspicion(void **state)
{
    struct cluster_message m;

    (void)state;
    two_hosts(1, false);
    suspect(1, 3, 2, 1);
    assert_int_equal(said(CLUSTER_LOST, -1, NULL), 0);
    suspect(0, 2, 3, 1);
    assert_int_equal(said(CLUSTER_LOST, 0, &m), 1);
    assert_int_equal(m.peer, 3); /* the higher id leaves */
    assert_int_equal(said(CLUSTER_KILL, 1, &m), 1);
    assert_int_equal(m.id, 3);
    pass_alive(2, 2);
    assert_int_equal(said(CLUSTER_VIEW, 0, NULL), 1);
    exited(1, 3, 0, 9);
    assert_view(2, 3, 1, 2, 4);
}

static void test_one_sided_suspicion(void **state)
{
    struct cluster_message m;

    (void)state;
    two_hosts(1, false);
    suspect(1, 3, 2, 1);
    pass_alive(0.5, 2);
    assert_int_equal(said(CLUSTER_LOST, -1, NULL), 0);
    pass_alive(0.5, 2);
    assert_int_equal(said(CLUSTER_LOST, 0, &m), 1);
    assert_int_equal(m.peer, 2); /* the accused */
    assert_int_equal(said(CLUSTER_KILL, 0, NULL), 1);
}

static void test_accuser_dies(void **state)
{
    (void)state;
    two_hosts(1, false);
    suspect(1, 3, 2, 1);
    lost(1, 3);
    exited(1, 3, 0, 9);
    pass_alive(3, 2);
    assert_int_equal(said(CLUSTER_KILL, -1, NULL), 0); /* it was the accuser's own trouble */
    assert_view(2, 3, 1, 2, 4);
}

static void test_old_suspicion(void **state)
{
    (void)state;
    two_hosts(1, false);
    lost(1, 3);
    exited(1, 3, 0, 9);
    suspect(0, 1, 2, 1); /* of view 1 */
    suspect(0, 2, 1, 1);
    suspect(0, 1, 3, 2); /* gone already */
    suspect(0, 1, 1, 2); /* itself */
    pass_alive(3, 2);
    assert_int_equal(said(CLUSTER_KILL, -1, NULL), 0);
}

static void test_silent_host(void **state)
{
    (void)state;
    two_hosts(1, false);
    pass_alive(4.5, 1); /* host 1 says nothing */
    assert_int_equal(said(CLUSTER_LOST, -1, NULL), 0);
    pass_alive(1, 1);
    assert_int_equal(said(CLUSTER_LOST, 0, NULL), 2);
    assert_view(2, 2, 1, 2); /* nobody there could confirm */
    assert_int_equal(said(CLUSTER_VIEW, 1, NULL), 1);
}

static void test_silent_and_suspected(void **state)
{
    (void)state;
    two_hosts(1, false);
    pass_alive(1, 1);
    suspect(0, 1, 3, 1);
    pass_alive(1, 1); /* well below the five seconds of silence */
    assert_view(2, 2, 1, 2);
}

static void test_closed_connection(void **state)
{
    (void)state;
    two_hosts(1, false);
    cluster_coordinator_gone(lab.c, 1, "closed its connection", lab.now);
    collect();
    assert_int_equal(said(CLUSTER_LOST, 0, NULL), 2);
    assert_view(2, 2, 1, 2);
}

static void test_own_sleep(void **state)
{
    (void)state;
    two_hosts(1, false);
    lab.now += 100; /* the coordinator itself was stopped */
    cluster_coordinator_tick(lab.c, lab.now);
    collect();
    assert_int_equal(said(CLUSTER_LOST, -1, NULL), 0);
}

static void test_join(void **state)
{
    struct cluster_message m;

    (void)state;
    two_hosts(1, true);
    join(2, CLUSTER_ANY_HOST, 2);
    assert_int_equal(said(CLUSTER_JOB, 2, &m), 1);
    assert_true(m.id == 5 && m.host == 2);
    for (uint32_t id = 1; id <= 4; id++)
        works_in(id <= 2 ? 0 : 1, id, 1);
    ready(2, 5);
    assert_view(2, 5, 1, 2, 3, 4, 5);
    ready(2, 6); /* the next one when all have found this one */
    for (uint32_t id = 1; id <= 5; id++) {
        assert_view(2, 5, 1, 2, 3, 4, 5);
        works_in(id <= 2 ? 0 : id <= 4 ? 1 : 2, id, 2);
    }
    assert_view(3, 6, 1, 2, 3, 4, 5, 6);
}

static void test_join_and_loss(void **state)
{
    (void)state;
    two_hosts(1, true);
    join(2, CLUSTER_ANY_HOST, 1);
    ready(2, 5); /* nobody works in view 1 yet */
    assert_int_equal(said(CLUSTER_VIEW, 0, NULL), 1);
    lost(0, 1);
    exited(0, 1, 0, 9);
    assert_view(2, 4, 2, 3, 4, 5);
}

static void test_join_waits_for_reaping(void **state)
{
    (void)state;
    two_hosts(1, true);
    join(2, CLUSTER_ANY_HOST, 1);
    lost(0, 1);
    ready(2, 5);
    assert_int_equal(said(CLUSTER_VIEW, 0, NULL), 1);
    exited(0, 1, 0, 9);
    assert_view(2, 4, 2, 3, 4, 5);
}

/* A guest has lost all its workers, one after the other: it is told of the last one, and may go. */
static void test_guest_without_workers(void **state)
{
    struct cluster_message m;

    (void)state;
    two_hosts(1, true);
    join(2, CLUSTER_ANY_HOST, 2);
    ready(2, 5);
    ready(2, 6);
    exited(2, 5, 0, 9);
    assert_int_equal(said(CLUSTER_END, 2, NULL), 0);
    exited(2, 6, 0, 11);
    assert_int_equal(said(CLUSTER_END, 2, &m), 1);
    assert_int_equal(m.code, BASE_ERR_PEER_LOST);
    assert_non_null(strstr(m.text, "worker 6 on host host-2 (pid 106) died (signal 11"));
    cluster_coordinator_gone(lab.c, 2, "closed its connection", lab.now);
    exited(1, 3, 0, 9); /* hosts of the job itself stay */
    exited(1, 4, 0, 9);
    assert_int_equal(said(CLUSTER_END, -1, NULL), 1);
    assert_false(cluster_coordinator_over(lab.c));
}

static void test_coming_back(void **state)
{
    struct cluster_message m;

    (void)state;
    two_hosts(1, true);
    cluster_coordinator_gone(lab.c, 1, "closed its connection", lab.now);
    join(5, 1, 1);
    assert_int_equal(said(CLUSTER_JOB, 5, &m), 1);
    assert_true(m.host == 2 && m.id == 5); /* a new host, a new worker */
}

/* Hosts that come and go, more of them than there can be at once. */
static void test_places_are_free_again(void **state)
{
    struct cluster_message m;

    (void)state;
    two_hosts(1, true);
    for (int i = 0; i < 2 * CLUSTER_MAX_HOSTS; i++) {
        lab.count = 0;
        join(2, CLUSTER_ANY_HOST, 1);
        assert_int_equal(said(CLUSTER_JOB, 2, &m), 1);
        assert_int_equal(m.host, 2);
        cluster_coordinator_gone(lab.c, 2, "closed its connection", lab.now);
        collect();
    }
}

static void refused(int link, const char *text)
{
    struct cluster_message m;

    assert_int_equal(said(CLUSTER_END, link, &m), 1);
    assert_int_equal(m.code, BASE_ERR_USAGE);
    if (strstr(m.text, text) == NULL)
        fail_msg("'%s' does not say '%s'", m.text, text);
    assert_int_equal(said(CLUSTER_JOB, link, NULL), 0);
}

static void test_refusals(void **state)
{
    (void)state;
    two_hosts(1, false);
    join(2, CLUSTER_ANY_HOST, 1);
    refused(2, "takes no more workers");
    finish(NULL);
    begin(3, 1, true);
    join(0, 0, 1);
    join(1, 0, 1);
    refused(1, "host 0 is there already");
    join(2, 3, 1);
    refused(2, "host 3 is not one of 3");
    join_with(3, 1, 1, json_pack("{s:s, s:{s:i}}", "program", "ping", "job", "bytes", 9));
    refused(3, "\"bytes\" is not the one of host 0");
    join_with(4, 1, 1, json_pack("{s:s, s:{}}", "program", "pong", "job"));
    refused(4, "\"program\"");
    tell(5, (struct cluster_message){.type = CLUSTER_JOIN, .host = 1, .workers = 1, .version = 9});
    refused(5, "protocol");
    join(6, 1, COMM_MAX_WORKERS);
    refused(6, "at most");
    tell(9, (struct cluster_message){.type = CLUSTER_JOIN,
                                     .host = 1,
                                     .workers = 1,
                                     .version = CLUSTER_PROTOCOL,
                                     .address = "fe80::1%eth0"});
    refused(9, "no numeric address");
    join_with(10, 1, 1, json_pack("{s:{s:{s:f, s:i}}}", "job", "settings", "lr", 0.5, "seed", 2));
    refused(10, "\"seed\" is not the one of host 0");
    assert_false(cluster_coordinator_knows(lab.c, 10));
    /* What is said and agrees, or is not said, is no conflict. */
    join_with(7, 1, 1, json_pack("{s:s, s:{s:s}}", "program", "ping", "job", "mode", "fast"));
    join(8, 2, 1);
    assert_int_equal(said(CLUSTER_JOB, -1, NULL), 3);
}

/* Lost before it said which slot it has: it has none that another could not have. */
static void test_slot_of_nobody(void **state)
{
    (void)state;
    two_hosts(1, true);
    join(2, CLUSTER_ANY_HOST, 2);
    lost(2, 5);
    assert_int_equal(hear(2, (struct cluster_message){.type = CLUSTER_READY, .id = 6}), BASE_OK);
}

static void test_nonsense(void **state)
{
    (void)state;
    two_hosts(1, true);
    assert_int_equal(hear(7, (struct cluster_message){.type = CLUSTER_READY, .id = 1}),
                     BASE_ERR_DATA); /* has not joined */
    assert_int_equal(hear(1, (struct cluster_message){.type = CLUSTER_LOST, .peer = 1}),
                     BASE_ERR_DATA); /* not its own */
    assert_int_equal(hear(1, (struct cluster_message){.type = CLUSTER_READY, .id = 3}),
                     BASE_ERR_DATA); /* twice */
    assert_int_equal(hear(1, (struct cluster_message){.type = CLUSTER_HEARTBEAT, .id = 1}),
                     BASE_ERR_DATA); /* not its own */
    join(2, CLUSTER_ANY_HOST, 2);
    ready(2, 5);
    assert_int_equal(hear(2, (struct cluster_message){.type = CLUSTER_READY, .id = 6, .slot = 5}),
                     BASE_ERR_DATA); /* another one's slot */
    assert_int_equal(hear(1, (struct cluster_message){.type = CLUSTER_KILL, .id = 3}),
                     BASE_ERR_DATA);
    assert_int_equal(hear(1, (struct cluster_message){.type = CLUSTER_JOIN, .workers = 1}),
                     BASE_ERR_DATA);
    assert_int_equal(hear(1, (struct cluster_message){.type = CLUSTER_RESULT, .id = 77}), BASE_OK);
    assert_int_equal(said(CLUSTER_LOST, -1, NULL), 0);
}

static void test_result(void **state)
{
    (void)state;
    two_hosts(1, false);
    for (int id = 4; id >= 1; id--)
        result(id <= 2 ? 0 : 1, (uint32_t)id);
    for (uint32_t id = 1; id <= 4; id++)
        exited(id <= 2 ? 0 : 1, id, 0, 0);
    assert_end(BASE_OK, "");
    assert_int_equal(said(CLUSTER_VIEW, 0, NULL), 1); /* ends are no losses */
    assert_int_equal(json_integer_value(json_object_get(cluster_coordinator_result(lab.c), "from")),
                     1);
}

static void test_killed_at_exit(void **state)
{
    (void)state;
    two_hosts(0, false);
    for (uint32_t id = 1; id <= 4; id++)
        result(id <= 2 ? 0 : 1, id);
    lost(0, 1); /* has given its result: no loss */
    exited(0, 1, 0, 9);
    for (uint32_t id = 2; id <= 4; id++)
        exited(id <= 2 ? 0 : 1, id, 0, 0);
    assert_end(BASE_OK, "");
}

static void test_nobody_left(void **state)
{
    (void)state;
    begin(1, 1, false);
    join(0, 0, 1);
    ready(0, 1);
    exited(0, 1, 0, 0);
    assert_end(BASE_ERR_PEER_LOST, "ended without a result");
}

static void test_stop(void **state)
{
    struct cluster_message stop = {.type = CLUSTER_STOP}, m;

    (void)state;
    two_hosts(1, false);
    cluster_message_text(&stop, "SIGINT on host 1");
    tell(1, stop);
    tell(1, stop);
    assert_int_equal(said(CLUSTER_STOP, 0, &m), 1);
    assert_int_equal(m.code, 0);
    assert_string_equal(m.text, "SIGINT on host 1");
    lost(1, 3); /* the others must be able to finish */
    exited(1, 3, 0, 9);
    assert_view(2, 3, 1, 2, 4);
}

static void test_stop_early(void **state)
{
    struct cluster_message stop = {.type = CLUSTER_STOP};

    (void)state;
    begin(2, 1, false);
    join(0, 0, 2);
    cluster_message_text(&stop, "SIGINT on host 0");
    tell(0, stop);
    assert_end(BASE_ERR_INTERRUPTED, "SIGINT");
}

static void test_events(void **state)
{
    static const char *const kinds[] = {"join", "join", "view", "lost", "exit", "view"};
    json_t *event;

    (void)state;
    two_hosts(1, false);
    lost(1, 3);
    exited(1, 3, 0, 9);
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
    two_hosts(1, false);
    assert_true(cluster_coordinator_knows(lab.c, 1));
    cluster_message_text(&m, "runs/elsewhere");
    tell(1, m); /* on another disk than host 0's */
    assert_null(cluster_coordinator_folder(lab.c));
    m.id = 1;
    cluster_message_text(&m, "runs/mine");
    tell(0, m);
    assert_string_equal(cluster_coordinator_folder(lab.c), "runs/mine");
}

static void test_status(void **state)
{
    json_t *status, *worker;

    (void)state;
    two_hosts(1, false);
    tell(1, (struct cluster_message){.type = CLUSTER_HEARTBEAT,
                                     .id = 3,
                                     .load = {.cpu = 0.75, .step = 12, .step_rate = 3}});
    lost(0, 2);
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

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_start),
        TEST(test_gathering_ends),
        TEST(test_loss),
        TEST(test_restart),
        TEST(test_restart_before_the_first_view),
        TEST(test_too_late),
        TEST(test_done_in_the_former_view),
        TEST(test_restart_gives_up),
        TEST(test_blame),
        TEST(test_two_losses_one_view),
        TEST(test_loss_while_starting),
        TEST(test_blames_the_last_cause),
        TEST(test_ready_and_dead),
        TEST(test_too_few),
        TEST(test_failed_workers_may_save),
        TEST(test_mutual_suspicion),
        TEST(test_one_sided_suspicion),
        TEST(test_accuser_dies),
        TEST(test_old_suspicion),
        TEST(test_silent_host),
        TEST(test_silent_and_suspected),
        TEST(test_closed_connection),
        TEST(test_own_sleep),
        TEST(test_join),
        TEST(test_join_and_loss),
        TEST(test_join_waits_for_reaping),
        TEST(test_guest_without_workers),
        TEST(test_coming_back),
        TEST(test_places_are_free_again),
        TEST(test_refusals),
        TEST(test_slot_of_nobody),
        TEST(test_nonsense),
        TEST(test_result),
        TEST(test_killed_at_exit),
        TEST(test_nobody_left),
        TEST(test_stop),
        TEST(test_stop_early),
        TEST(test_events),
        TEST(test_folder),
        TEST(test_status),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
