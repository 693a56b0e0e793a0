/* SPDX-License-Identifier: MIT */
#include "support/lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

struct lab lab;

void lab_collect(void)
{
    int link;
    struct cluster_message m;

    while (cluster_coordinator_next(lab.c, &link, &m)) {
        if (m.type == CLUSTER_STATE) {
            json_decref(lab.state);
            lab.state = json_incref(m.body);
        }
        cluster_message_fini(&m);
        if (m.type == CLUSTER_HEARTBEAT)
            continue;
        assert_true(lab.count < LAB_MAX_SAID);
        lab.said[lab.count].link = link;
        lab.said[lab.count++].m = m;
    }
}

void lab_begin(int hosts, int min_workers, bool joins)
{
    json_t *job = json_pack("{s:i, s:s, s:{s:f, s:i}}", "bytes", 8, "mode", "fast", "settings",
                            "lr", 0.5, "seed", 1);
    struct cluster_coordinator_setup setup = {.name = "abc",
                                              .program = "ping",
                                              .job = job,
                                              .check = lab.check,
                                              .transport = lab.transport,
                                              .hosts = hosts,
                                              .min_workers = min_workers,
                                              .least = lab.least,
                                              .joins = joins,
                                              .restarts = lab.restarts,
                                              .silence = 5,
                                              .gather = 60};

    lab.now = 1000;
    lab.count = 0;
    lab.own = 0;
    lab.c = cluster_coordinator_new(&setup, lab.now);
    json_decref(job);
}

int lab_finish(void **state)
{
    (void)state;
    cluster_coordinator_free(lab.c);
    lab.c = NULL;
    json_decref(lab.state);
    lab.state = NULL;
    lab.restarts = false;
    lab.least = 0;
    lab.transport = NULL;
    lab.check = NULL;
    return 0;
}

base_status lab_hear(int link, struct cluster_message m)
{
    base_status st = cluster_coordinator_hear(lab.c, link, &m, lab.now);

    cluster_message_fini(&m);
    lab_collect();
    return st;
}

void lab_tell(int link, struct cluster_message m)
{
    assert_int_equal(lab_hear(link, m), BASE_OK);
}

void lab_join_with(int link, uint32_t host, int workers, json_t *body)
{
    struct cluster_message m = {.type = CLUSTER_JOIN,
                                .host = host,
                                .workers = workers,
                                .version = CLUSTER_PROTOCOL,
                                .address = "127.0.0.1",
                                .port = 4711,
                                .body = body};

    snprintf(m.text, sizeof m.text, "host-%d", link);
    lab_tell(link, m);
}

void lab_join(int link, uint32_t host, int workers)
{
    lab_join_with(link, host, workers, NULL);
}

void lab_ready(int link, uint32_t id)
{
    lab_tell(link, (struct cluster_message){.type = CLUSTER_READY,
                                            .id = id,
                                            .slot = (uint16_t)(id % COMM_MAX_WORKERS),
                                            .pid = 100 + (int)id});
}

void lab_lost(int link, uint32_t id)
{
    struct cluster_message m = {.type = CLUSTER_LOST, .peer = id};

    cluster_message_text(&m, "was killed");
    lab_tell(link, m);
}

void lab_exited(int link, uint32_t id, int code, int signal)
{
    struct cluster_message m = {
        .type = CLUSTER_EXITED, .id = id, .pid = 100 + (int)id, .code = code, .signal = signal};

    cluster_message_text(&m, "first line\nlast line");
    lab_tell(link, m);
}

void lab_failed(int link, uint32_t id, base_code code, const char *words)
{
    struct cluster_message m = {.type = CLUSTER_FAILED, .id = id, .code = (int)code};

    cluster_message_text(&m, words);
    lab_tell(link, m);
}

void lab_suspect(int link, uint32_t id, uint32_t peer, uint32_t view)
{
    lab_tell(link, (struct cluster_message){
                       .type = CLUSTER_SUSPECT, .id = id, .peer = peer, .view = view});
}

void lab_accuse(int link, uint32_t id, uint32_t peer, uint32_t view)
{
    struct cluster_message m = {.type = CLUSTER_ACCUSE, .id = id, .peer = peer, .view = view};

    cluster_message_text(&m, "lies");
    lab_tell(link, m);
}

void lab_result_of(int link, uint32_t id, uint32_t view)
{
    lab_tell(link, (struct cluster_message){.type = CLUSTER_RESULT,
                                            .id = id,
                                            .view = view,
                                            .body = json_pack("{s:I}", "from", (json_int_t)id)});
}

void lab_result(int link, uint32_t id)
{
    struct cluster_message m = {0};

    lab_said(CLUSTER_VIEW, link, &m);
    lab_result_of(link, id, m.members.number);
}

void lab_works_in(int link, uint32_t id, uint32_t view)
{
    lab_tell(link, (struct cluster_message){
                       .type = CLUSTER_HEARTBEAT, .id = id, .view = view, .load.step = -1});
}

void lab_pass_alive(double seconds, int hosts)
{
    for (double end = lab.now + seconds; lab.now < end;) {
        lab.now += 0.1;
        for (int i = 0; i < hosts; i++)
            lab_tell(i, (struct cluster_message){.type = CLUSTER_HEARTBEAT, .load.step = -1});
        cluster_coordinator_tick(lab.c, lab.now);
        lab_collect();
    }
}

int lab_said(enum cluster_type type, int link, struct cluster_message *last_p)
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

void lab_assert_view(uint32_t number, int size, ...)
{
    struct cluster_message m;
    va_list ids;

    assert_true(lab_said(CLUSTER_VIEW, lab.own, &m) > 0);
    assert_int_equal(m.members.number, number);
    assert_int_equal(m.members.size, size);
    va_start(ids, size);
    for (int i = 0; i < size; i++)
        assert_int_equal(m.members.members[i].id, va_arg(ids, int));
    va_end(ids);
}

void lab_assert_end(base_code code, const char *text)
{
    struct cluster_message m;

    assert_int_equal(lab_said(CLUSTER_END, lab.own, &m), 1);
    assert_int_equal(m.code, code);
    if (strstr(m.text, text) == NULL)
        fail_msg("'%s' does not say '%s'", m.text, text);
    assert_true(cluster_coordinator_over(lab.c));
}

void lab_two_hosts(int min_workers, bool joins)
{
    lab_begin(2, min_workers, joins);
    lab_join(1, 1, 2);
    assert_int_equal(lab_said(CLUSTER_JOB, -1, NULL), 0);
    lab_join(0, 0, 2);
    for (uint32_t id = 1; id <= 4; id++)
        lab_ready(id <= 2 ? 0 : 1, id);
}

void lab_two_hosts_that_restart(void)
{
    lab.restarts = true;
    lab.least = 1;
    lab_two_hosts(0, true);
}
