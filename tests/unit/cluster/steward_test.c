/* SPDX-License-Identifier: MIT
 *
 * An agent's decisions with hands that only write down what they are told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cluster/steward.h"

static char did[4096]; /* one word after the other */
static bool refuse_start;

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
    size_t used = strlen(did);
    va_list args;

    va_start(args, format);
    vsnprintf(did + used, sizeof did - used, format, args);
    va_end(args);
    strncat(did, " ", sizeof did - strlen(did) - 1);
}

/* What was done since the last call. */
static void expect_done(const char *words)
{
    size_t length = strlen(did);

    if (length > 0)
        did[length - 1] = '\0';
    assert_string_equal(did, words);
    did[0] = '\0';
}

static void say(void *agent, const struct cluster_message *m)
{
    (void)agent;
    note("say:%s:%u", cluster_type_name(m->type), m->type == CLUSTER_LOST ? m->peer : m->id);
}

static void tell(void *agent, int slot, const struct cluster_message *m)
{
    (void)agent;
    note("tell:%d:%s", slot, cluster_type_name(m->type));
}

static base_status start(void *agent, int slot, uint32_t id, const json_t *order)
{
    (void)agent;
    assert_true(json_is_object(order));
    if (refuse_start)
        return base_fail(BASE_ERR_IO, "no more processes");
    note("start:%d:%u", slot, id);
    return BASE_OK;
}

static void kill_worker(void *agent, int slot)
{
    (void)agent;
    note("kill:%d", slot);
}

static void watch(void *agent, const struct comm_view *view, uint64_t slots)
{
    (void)agent;
    note("watch:%u:%llx", view->number, (unsigned long long)slots);
}

static void lost(void *agent, int slot)
{
    (void)agent;
    note("lost:%d", slot);
}

static void alarm_host(void *agent, uint32_t view, uint32_t id)
{
    (void)agent;
    note("alarm:%u:%u", view, id);
}

static void give_region(void *agent, int slot, const struct cluster_message *m)
{
    (void)agent;
    note("region:%d:%s", slot, m->key);
}

static void forget_regions(void *agent, uint32_t oldest_view)
{
    (void)agent;
    note("forget:%u", oldest_view);
}

static bool measure(void *agent, int slot, double now, struct cluster_load *load)
{
    (void)agent;
    (void)now;
    load->cpu = slot < 0 ? 0.5 : 1;
    return true;
}

static void send_agent(void *agent, uint32_t host, bool answer, const struct cluster_message *m)
{
    (void)agent;
    note("send:%u:%s%s", host, answer ? "answer:" : "", cluster_type_name(m->type));
}

static void drop(void *agent)
{
    (void)agent;
    note("drop");
}

static base_status follow(void *agent, uint32_t host, double now)
{
    (void)agent;
    (void)now;
    note("follow:%u", host);
    return BASE_OK;
}

static const struct cluster_hands hands = {
    .say = say,
    .tell = tell,
    .start = start,
    .kill = kill_worker,
    .watch = watch,
    .lost = lost,
    .alarm = alarm_host,
    .give_region = give_region,
    .forget_regions = forget_regions,
    .measure = measure,
    .send = send_agent,
    .drop = drop,
    .follow = follow,
};

static struct cluster_steward s;

static void hear(struct cluster_message m, double now)
{
    assert_int_equal(cluster_steward_hear_coordinator(&s, &m, now), BASE_OK);
    cluster_message_fini(&m);
}

static void hear_from(int slot, struct cluster_message m, double now)
{
    assert_int_equal(cluster_steward_hear_worker(&s, slot, &m, now), BASE_OK);
}

/* Two workers, 5 and 6, on host 1, in view 1 with worker 1 of host 0. No heartbeat is due. */
static void begin(void)
{
    struct cluster_message view = {
        .type = CLUSTER_VIEW,
        .members = {.number = 1, .size = 3, .members = {{.id = 1}, {.id = 5}, {.id = 6}}}};

    did[0] = '\0';
    refuse_start = false;
    cluster_steward_init(&s, &hands, NULL, 4, 0);
    snprintf(s.coordinator, sizeof s.coordinator, "host 0 (there)");
    s.next_beat = 1e9;
    hear((struct cluster_message){.type = CLUSTER_JOB,
                                  .id = 5,
                                  .host = 1,
                                  .workers = 2,
                                  .body = json_pack("{s:f}", "silence", 2.0)},
         0);
    expect_done("start:0:5 start:1:6");
    hear_from(0, (struct cluster_message){.type = CLUSTER_READY, .id = 5}, 0);
    hear_from(1, (struct cluster_message){.type = CLUSTER_READY, .id = 6, .slot = 1}, 0);
    hear(view, 0);
    expect_done("say:ready:5 say:ready:6 watch:1:3 tell:0:view tell:1:view");
}

static void test_losses(void **state)
{
    struct cluster_message exited = {.type = CLUSTER_EXITED, .id = 6};

    (void)state;
    begin();
    cluster_steward_cut(&s, 1, "died", 0.5);
    expect_done("lost:1 say:lost:6");
    cluster_steward_lose(&s, 1, "died"); /* once is enough */
    expect_done("");
    cluster_steward_bury(&s, 1, &exited);
    expect_done("say:exited:6");
    hear((struct cluster_message){.type = CLUSTER_LOST, .peer = 1, .view = 1}, 0.5);
    expect_done("alarm:1:1 tell:0:lost");
    hear((struct cluster_message){.type = CLUSTER_KILL, .id = 5}, 0.5);
    hear((struct cluster_message){.type = CLUSTER_KILL, .id = 6}, 0.5); /* gone already */
    expect_done("kill:0");
}

static void test_done_is_not_lost(void **state)
{
    struct cluster_message exited = {.type = CLUSTER_EXITED, .id = 5};

    (void)state;
    begin();
    hear_from(0, (struct cluster_message){.type = CLUSTER_RESULT, .id = 5, .view = 1}, 0);
    expect_done("watch:1:2 say:result:5");
    cluster_steward_bury(&s, 0, &exited);
    expect_done("say:exited:5");
}

static void test_silence(void **state)
{
    (void)state;
    begin();
    hear((struct cluster_message){.type = CLUSTER_HEARTBEAT}, 1.5);
    hear_from(
        1, (struct cluster_message){.type = CLUSTER_HEARTBEAT, .id = 6, .view = 1, .load.step = 3},
        1.5);
    expect_done("forget:1");
    cluster_steward_wake(&s, 0.9);
    cluster_steward_wake(&s, 1.8);
    cluster_steward_wake(&s, 2.5);
    cluster_steward_tick(&s, 2.5);
    expect_done("lost:0 say:lost:5 kill:0");
    s.next_beat = 0;
    cluster_steward_tick(&s, 2.6);
    expect_done("kill:0 say:heartbeat:5 say:heartbeat:6 say:heartbeat:0");
    cluster_steward_tick(&s, 2.7); /* not due again */
    expect_done("kill:0");
}

/* The steward blames no worker for the time that the agent itself slept. */
static void test_asleep(void **state)
{
    (void)state;
    begin();
    cluster_steward_wake(&s, 100);
    cluster_steward_tick(&s, 100);
    expect_done("");
    assert_false(cluster_steward_over(&s, 100));
}

static void test_coordinator_is_lost(void **state)
{
    (void)state;
    begin();
    hear_from(0, (struct cluster_message){.type = CLUSTER_HEARTBEAT, .id = 5, .view = 1}, 2);
    hear_from(1, (struct cluster_message){.type = CLUSTER_HEARTBEAT, .id = 6, .view = 1}, 2);
    expect_done("forget:1 forget:1");
    cluster_steward_tick(&s, 2.5);
    expect_done("drop tell:0:stop tell:1:stop");
    assert_int_equal(s.code, BASE_ERR_PEER_LOST);
    assert_non_null(strstr(s.words, "host 0 (there) is gone"));
    assert_false(cluster_steward_over(&s, 3));
    assert_true(cluster_steward_over(&s, 60)); /* they had time to save */
}

/* Hosts 0, 1 (this one) and 2, whose workers 1, 5, 6 and 7 are in view 1. */
static void learn_state(void)
{
    struct cluster_state state = {
        .serial = 1,
        .name = "job",
        .program = "ping",
        .job = json_object(),
        .silence = 2,
        .gather = 30,
        .going_on = true,
        .last_id = 7,
        .view = {.number = 1,
                 .size = 4,
                 .members = {{.id = 1},
                             {.id = 5, .host = 1},
                             {.id = 6, .host = 1, .slot = 1},
                             {.id = 7, .host = 2}}},
        .quorum = {true, true, true},
        .host_count = 3,
    };

    for (int i = 0; i < 3; i++)
        state.hosts[i] =
            (struct cluster_state_host){.here = true, .port = 7, .address = "127.0.0.1"};
    s.succeeds = true;
    hear((struct cluster_message){.type = CLUSTER_STATE, .body = cluster_state_to_json(&state)}, 0);
    cluster_state_fini(&state);
}

static void test_leads(void **state)
{
    struct cluster_message yes = {.type = CLUSTER_VOTE, .host = 2, .term = 1};

    (void)state;
    begin();
    learn_state();
    cluster_steward_lose_coordinator(&s, "closed", 1);
    expect_done("drop");
    assert_true(cluster_steward_looks(&s));
    hear_from(0, (struct cluster_message){.type = CLUSTER_SUSPECT, .id = 5, .peer = 1}, 1);
    hear_from(0, (struct cluster_message){.type = CLUSTER_FOLDER, .id = 5, .text = "x"}, 1);
    expect_done(""); /* there is no coordinator to hear it */
    cluster_steward_dead(&s, 0, 1);
    cluster_steward_opened(&s, 2, 1);
    expect_done("send:2:ask");
    assert_int_equal(cluster_steward_hear_agent(&s, 2, &yes, 1), BASE_OK);
    expect_done("follow:1 say:report:0 say:folder:5");
    assert_false(cluster_steward_over(&s, 60));
    cluster_steward_fini(&s);
}

/* A host that was cut off or asleep may have been given up, and the others be done: that no agent
 * listens at their ports any more is no death then, and it has no majority by itself. */
static void test_was_given_up(void **state)
{
    (void)state;
    for (int asleep = 0; asleep < 2; asleep++) {
        double now = asleep ? 9 : 3;

        begin();
        learn_state();
        for (double at = 0.5; !asleep && at < now; at += 0.5)
            cluster_steward_wake(&s, at);
        cluster_steward_wake(&s, now);
        if (asleep) /* what was sent long ago is read now */
            hear((struct cluster_message){.type = CLUSTER_HEARTBEAT}, now);
        cluster_steward_lose_coordinator(&s, "closed", now);
        cluster_steward_dead(&s, 0, now);
        cluster_steward_dead(&s, 2, now);
        cluster_steward_tick(&s, now + 2);
        assert_true(cluster_steward_looks(&s));
        did[0] = '\0';
        cluster_steward_fini(&s);
    }
}

static void test_is_led(void **state)
{
    struct cluster_message lead = {.type = CLUSTER_LEAD, .host = 2, .term = 1};

    (void)state;
    begin();
    learn_state();
    assert_int_equal(cluster_steward_hear_agent(&s, 2, &lead, 1), BASE_OK);
    expect_done("follow:2 say:report:0"); /* away from a coordinator that it still hears */
    lead = (struct cluster_message){.type = CLUSTER_LEAD, .host = 0, .term = 0};
    assert_int_equal(cluster_steward_hear_agent(&s, 0, &lead, 1), BASE_OK);
    expect_done("send:0:answer:vote"); /* the old one has come back */
    cluster_steward_fini(&s);
}

static void test_gives_up(void **state)
{
    (void)state;
    begin();
    learn_state();
    cluster_steward_lose_coordinator(&s, "closed", 1);
    expect_done("drop");
    for (int i = 0; i < 50; i++) {
        double now = 1 + 0.1 * i;

        hear_from(0, (struct cluster_message){.type = CLUSTER_HEARTBEAT, .id = 5, .view = 1}, now);
        hear_from(1, (struct cluster_message){.type = CLUSTER_HEARTBEAT, .id = 6, .view = 1}, now);
        cluster_steward_tick(&s, now);
    }
    did[0] = '\0';
    cluster_steward_tick(&s, 6.1);
    expect_done("tell:0:stop tell:1:stop");
    assert_non_null(strstr(s.words, "more than half"));
    assert_int_equal(s.code, BASE_ERR_PEER_LOST);
    cluster_steward_fini(&s);
}

static struct cluster_message settings(uint32_t number)
{
    return (struct cluster_message){
        .type = CLUSTER_SETTINGS, .serial = number, .body = json_pack("{s:s}", "k", "4")};
}

/* Workers are told of a change once, those that are started later at their start. */
static void test_settings(void **state)
{
    struct cluster_message applied = {.type = CLUSTER_APPLIED, .id = 5, .serial = 1, .step = 7};

    (void)state;
    begin();
    hear(settings(2), 0);
    expect_done("tell:0:settings tell:1:settings");
    hear(settings(2), 0);
    hear(settings(1), 0);
    expect_done("");
    hear_from(0, applied, 0);
    expect_done("say:applied:5");
    hear((struct cluster_message){.type = CLUSTER_JOB,
                                  .id = 9,
                                  .host = 1,
                                  .workers = 1,
                                  .body = json_pack("{s:f}", "silence", 2.0)},
         0);
    expect_done("start:2:9 tell:2:settings");
    cluster_steward_fini(&s);
}

static void test_nonsense(void **state)
{
    struct cluster_message m = {.type = CLUSTER_READY, .id = 6};

    (void)state;
    begin();
    assert_int_equal(cluster_steward_hear_worker(&s, 0, &m, 0), BASE_ERR_DATA); /* as another */
    m.type = CLUSTER_JOIN;
    assert_int_equal(cluster_steward_hear_worker(&s, 0, &m, 0), BASE_ERR_DATA);
    assert_int_equal(cluster_steward_hear_coordinator(&s, &m, 0), BASE_ERR_DATA);
    m.type = CLUSTER_JOB; /* without a body */
    assert_int_equal(cluster_steward_hear_coordinator(&s, &m, 0), BASE_ERR_DATA);
    expect_done("");
}

static void test_start_fails(void **state)
{
    (void)state;
    begin();
    refuse_start = true;
    hear((struct cluster_message){.type = CLUSTER_JOB,
                                  .id = 9,
                                  .host = 1,
                                  .workers = 1,
                                  .body = json_pack("{s:f}", "silence", 2.0)},
         0);
    expect_done("say:exited:9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_done_is_not_lost),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_asleep),
        cmocka_unit_test(test_coordinator_is_lost),
        cmocka_unit_test(test_leads),
        cmocka_unit_test(test_was_given_up),
        cmocka_unit_test(test_is_led),
        cmocka_unit_test(test_gives_up),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_start_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
