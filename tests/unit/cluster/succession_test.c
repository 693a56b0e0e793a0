/* SPDX-License-Identifier: MIT
 *
 * The choice of a successor, among the machines of several hosts and a network that the test rules:
 * who is dead, cut off or late, what is lost on the way. In every history at most one host leads in
 * a term.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "cluster/succession.h"

enum { HOSTS = 7, MAIL = 256 };

static struct {
    int hosts;
    double now;
    struct cluster_succession s[HOSTS];
    bool dead[HOSTS];         /* its agent; refuses connections */
    bool apart[HOSTS][HOSTS]; /* nothing passes between these two */
    int lose;                 /* so many of a hundred messages are lost */
    struct base_rng rng;
    uint32_t draws;
    struct {
        uint32_t from, to;
        struct cluster_message m;
    } mail[MAIL];
    int count;
    int led[CLUSTER_MAX_TERM + 1]; /* by term: 1 + the host that led; 0: none */
} lab;

static void seed(uint64_t number)
{
    lab.rng = base_rng_of(number, BASE_STREAM_TEST, 0, 0, 0);
    lab.draws = 0;
}

static uint32_t draw(void)
{
    return base_rng_u32(&lab.rng, lab.draws++);
}

/* Hosts 0 … in_view - 1 are in the view, 0 … quorum - 1 in the last that was in use. */
static json_t *state_of(int hosts, uint32_t term, uint32_t serial, int in_view, int quorum)
{
    struct cluster_state *state = calloc(1, sizeof *state);
    json_t *json;

    *state = (struct cluster_state){.term = term,
                                    .serial = serial,
                                    .name = "job",
                                    .program = "train",
                                    .job = json_object(),
                                    .silence = 2,
                                    .gather = 30,
                                    .going_on = true,
                                    .view = {.number = serial, .size = (uint32_t)in_view},
                                    .host_count = hosts};
    for (int i = 0; i < hosts; i++)
        state->hosts[i] =
            (struct cluster_state_host){.here = true, .port = 7, .address = "127.0.0.1"};
    for (int i = 0; i < quorum; i++)
        state->quorum[i] = true;
    for (int i = 0; i < in_view; i++)
        state->view.members[i] = (struct comm_member){.id = (uint32_t)i + 1, .host = (uint16_t)i};
    json = cluster_state_to_json(state);
    cluster_state_fini(state);
    free(state);
    return json;
}

static void learn_both(int host, uint32_t serial, int in_view, int quorum)
{
    json_t *state = state_of(lab.hosts, 0, serial, in_view, quorum);

    assert_int_equal(cluster_succession_learn(&lab.s[host], (uint32_t)host, state), BASE_OK);
    json_decref(state);
}

static void learn(int host, uint32_t serial, int in_view)
{
    learn_both(host, serial, in_view, in_view);
}

/* All follow host 0 in view 1, which has all hosts. */
static void begin(int hosts)
{
    memset(&lab, 0, sizeof lab);
    lab.hosts = hosts;
    for (int i = 0; i < hosts; i++) {
        cluster_succession_init(&lab.s[i]);
        learn(i, 1, hosts);
    }
}

static int finish(void **state)
{
    (void)state;
    for (int i = 0; i < lab.count; i++)
        cluster_message_fini(&lab.mail[i].m);
    for (int i = 0; i < lab.hosts; i++)
        cluster_succession_fini(&lab.s[i]);
    memset(&lab, 0, sizeof lab);
    return 0;
}

static void take_mail(int host)
{
    struct cluster_message m;
    uint32_t to;
    bool answer;

    while (cluster_succession_next(&lab.s[host], &to, &answer, &m)) {
        bool lost = lab.lose > 0 && (int)(draw() % 100) < lab.lose;

        if (lab.dead[to] || lab.apart[host][to] || lost || lab.count == MAIL) {
            cluster_message_fini(&m);
            continue;
        }
        lab.mail[lab.count].from = (uint32_t)host;
        lab.mail[lab.count].to = to;
        lab.mail[lab.count++].m = m;
    }
}

/* A host that has come to lead tells the others; never two in one term. */
static void tell_lead(int host)
{
    struct cluster_succession *s = &lab.s[host];

    if (s->stage != CLUSTER_LEADING || lab.led[s->term] == host + 1)
        return;
    assert_int_equal(lab.led[s->term], 0);
    lab.led[s->term] = host + 1;
    for (uint32_t i = 0; i < (uint32_t)lab.hosts && lab.count < MAIL; i++)
        if ((int)i != host && !lab.dead[i] && !lab.apart[host][i]) {
            lab.mail[lab.count].from = (uint32_t)host;
            lab.mail[lab.count].to = i;
            lab.mail[lab.count++].m = (struct cluster_message){
                .type = CLUSTER_LEAD, .host = (uint32_t)host, .term = s->term};
        }
}

static void connect_hosts(int host)
{
    struct cluster_succession *s = &lab.s[host];

    for (uint32_t to = 0; to < (uint32_t)lab.hosts; to++) {
        if (!cluster_succession_wants(s, to) || lab.apart[host][to])
            continue;
        if (lab.dead[to])
            cluster_succession_dead(s, to, lab.now);
        else
            cluster_succession_opened(s, to, lab.now);
    }
}

static void deliver_one(void)
{
    int at = (int)(draw() % (uint32_t)lab.count);
    uint32_t from = lab.mail[at].from, to = lab.mail[at].to;
    struct cluster_message m = lab.mail[at].m;

    lab.mail[at] = lab.mail[--lab.count];
    if (!lab.dead[to] && !lab.apart[from][to])
        assert_int_equal(cluster_succession_hear(&lab.s[to], from, &m, lab.now), BASE_OK);
    cluster_message_fini(&m);
    take_mail((int)to);
    tell_lead((int)to);
}

static void pass(double seconds)
{
    for (int i = 0; i < (int)(seconds / 0.05); i++) {
        lab.now += 0.05;
        for (int host = 0; host < lab.hosts; host++) {
            if (lab.dead[host])
                continue;
            connect_hosts(host);
            cluster_succession_tick(&lab.s[host], lab.now);
            take_mail(host);
            tell_lead(host);
        }
        while (lab.count > 0)
            deliver_one();
    }
}

static void lose_coordinator(int host)
{
    cluster_succession_begin(&lab.s[host], lab.now);
}

/* The host that leads, which all of `followers` (bits) follow. */
static void assert_leads(int leader, unsigned followers)
{
    assert_int_equal(lab.s[leader].stage, CLUSTER_LEADING);
    for (int i = 0; i < lab.hosts; i++)
        if ((followers >> i & 1) != 0) {
            assert_int_equal(lab.s[i].stage, CLUSTER_FOLLOWING);
            assert_int_equal(lab.s[i].leader, leader);
            assert_int_equal(lab.s[i].term, lab.s[leader].term);
        }
}

static void test_lowest_leads(void **state)
{
    (void)state;
    begin(4);
    lab.dead[0] = true;
    for (int i = 3; i > 0; i--)
        lose_coordinator(i);
    pass(0.3);
    assert_leads(1, 0xc);
    assert_int_equal(lab.s[1].term, 1);
}

/* Several deaths at once do not stop the job: dead hosts do not count. */
static void test_deaths(void **state)
{
    (void)state;
    begin(5);
    lab.dead[0] = lab.dead[1] = lab.dead[2] = true;
    lose_coordinator(3);
    lose_coordinator(4);
    pass(1);
    assert_leads(3, 0x10);
    finish(state);
    begin(2);
    lab.dead[0] = true;
    lose_coordinator(1);
    pass(1);
    assert_leads(1, 0);
}

/* With two hosts, one of them silent: it may be alive. */
static void test_two_hosts_apart(void **state)
{
    (void)state;
    begin(2);
    lab.apart[0][1] = lab.apart[1][0] = true;
    lose_coordinator(1);
    pass(4);
    assert_int_equal(lab.s[1].stage, CLUSTER_LOOKING);
    pass(2);
    assert_int_equal(lab.s[1].stage, CLUSTER_GIVEN_UP);
    assert_non_null(strstr(lab.s[1].why, "more than half"));
}

/* A host that alone has lost the coordinator gets no vote of those that hear it. */
static void test_coordinator_lives(void **state)
{
    (void)state;
    begin(4);
    lab.apart[0][1] = lab.apart[1][0] = true;
    lose_coordinator(1);
    pass(10);
    assert_int_equal(lab.s[1].stage, CLUSTER_GIVEN_UP);
    for (int i = 2; i < 4; i++)
        assert_true(lab.s[i].stage == CLUSTER_FOLLOWING && lab.s[i].leader == 0);
}

/* Late ones find out that the coordinator is lost while the first already asks. */
static void test_late(void **state)
{
    (void)state;
    begin(3);
    lab.dead[0] = true;
    lab.apart[0][1] = lab.apart[0][2] = true; /* its machine is off: no refusal */
    lab.apart[1][0] = lab.apart[2][0] = true;
    lose_coordinator(1);
    pass(0.7);
    assert_int_equal(lab.s[1].stage, CLUSTER_LOOKING);
    lose_coordinator(2);
    pass(1.5);
    assert_leads(1, 0x4);
}

/* The minority of a cut gives up, the majority goes on; the coordinator that comes back in its old
 * term leads no one. */
static void test_cut(void **state)
{
    struct cluster_message lead = {.type = CLUSTER_LEAD, .host = 0, .term = 0};

    (void)state;
    begin(5);
    for (int a = 0; a < 2; a++)
        for (int b = 2; b < 5; b++)
            lab.apart[a][b] = lab.apart[b][a] = true;
    for (int i = 1; i < 5; i++)
        lose_coordinator(i);
    pass(8);
    assert_leads(2, 0x18);
    assert_int_equal(lab.s[1].stage, CLUSTER_GIVEN_UP);
    memset(lab.apart, 0, sizeof lab.apart);
    assert_int_equal(cluster_succession_hear(&lab.s[3], 0, &lead, lab.now), BASE_OK);
    assert_leads(2, 0x18);
}

/* All ask at the same time, each in terms of its own, and vote for themselves: a later term
 * decides, and the lowest asks first in it. */
static void test_split_vote(void **state)
{
    (void)state;
    begin(4);
    lab.dead[0] = true;
    for (int a = 1; a < 4; a++)
        for (int b = 1; b < 4; b++)
            lab.apart[a][b] = a != b;
    for (int i = 1; i < 4; i++)
        lose_coordinator(i);
    pass(1);
    for (int i = 1; i < 4; i++)
        assert_true(lab.s[i].voted_term > 0 && lab.s[i].voted_for == (uint32_t)i);
    memset(lab.apart, 0, sizeof lab.apart);
    pass(3);
    assert_leads(1, 0xc);
    assert_true(lab.s[1].term > 1);
}

/* The newest state among the voters counts, also for the quorum. */
static void test_newer_state(void **state)
{
    (void)state;
    begin(4);
    lab.dead[0] = true;
    learn(3, 5, 4);
    for (int i = 1; i < 4; i++)
        lose_coordinator(i);
    lab.apart[1][2] = lab.apart[2][1] = true; /* so that host 3's vote is needed */
    pass(2);
    assert_leads(1, 0x8);
    assert_int_equal(lab.s[1].state.serial, 5);
    finish(state);
    begin(3);
    lab.dead[0] = true;
    learn(2, 5, 2); /* host 2 is in the view no more, and knows it */
    lab.apart[0][1] = lab.apart[1][0] = true;
    lose_coordinator(1);
    lose_coordinator(2);
    pass(3);
    assert_int_equal(lab.s[1].stage, CLUSTER_LOOKING); /* one of hosts 0 and 1 is no majority */
}

/* A view with hosts 0 to 3 of seven was published; whether all of them came to it, not all know. A
 * majority of that view alone is not enough, nor one of the hosts before it. */
static void test_two_views(void **state)
{
    (void)state;
    for (int side = 0; side < 2; side++) {
        begin(7);
        lab.dead[0] = true;
        for (int i = 1; i < 7; i++)
            lab.apart[0][i] = lab.apart[i][0] = true; /* its machine is off */
        for (int i = 1; i < 4; i++)
            learn_both(i, 2, 4, 7);
        for (int a = 1; a < 7; a++) /* 1 2 3 | 4 5 6, then 1 2 | 3 4 5 6 */
            for (int b = 1; b < 7; b++)
                if ((a < 4 - side) != (b < 4 - side))
                    lab.apart[a][b] = true;
        for (int i = 1; i < 7; i++)
            lose_coordinator(i);
        pass(6);
        for (int i = 1; i < 7; i++)
            assert_int_equal(lab.s[i].stage, CLUSTER_GIVEN_UP);
        finish(state);
    }
    begin(7); /* all came to it, and host 1 knows */
    lab.dead[0] = true;
    for (int i = 1; i < 7; i++)
        lab.apart[0][i] = lab.apart[i][0] = true;
    learn_both(1, 3, 4, 4);
    for (int i = 2; i < 4; i++)
        learn_both(i, 2, 4, 7);
    for (int a = 1; a < 7; a++)
        for (int b = 1; b < 7; b++)
            if ((a < 4) != (b < 4))
                lab.apart[a][b] = true;
    for (int i = 1; i < 7; i++)
        lose_coordinator(i);
    pass(6);
    assert_leads(1, 0xc);
    assert_int_equal(lab.s[5].stage, CLUSTER_GIVEN_UP);
}

/* Asks and votes that are lost on the way are repeated. */
static void test_lost_acknowledgement(void **state)
{
    (void)state;
    begin(3);
    lab.dead[0] = true;
    lab.lose = 70;
    seed(7);
    lose_coordinator(1);
    lose_coordinator(2);
    pass(4.5);
    lab.lose = 0;
    assert_true(lab.led[lab.s[1].term] != 0 || lab.led[lab.s[2].term] != 0);
}

static void test_nothing_to_succeed(void **state)
{
    (void)state;
    memset(&lab, 0, sizeof lab);
    lab.hosts = 1;
    cluster_succession_init(&lab.s[0]);
    cluster_succession_begin(&lab.s[0], 0);
    assert_int_equal(lab.s[0].stage, CLUSTER_GIVEN_UP);
}

static void test_nonsense(void **state)
{
    struct cluster_message m = {.type = CLUSTER_ASK, .host = 2, .term = 1};

    (void)state;
    begin(3);
    assert_int_equal(cluster_succession_hear(&lab.s[1], 0, &m, 0), BASE_ERR_DATA); /* as another */
    assert_int_equal(cluster_succession_hear(&lab.s[2], 2, &m, 0), BASE_ERR_DATA); /* as itself */
    m.type = CLUSTER_VIEW;
    assert_int_equal(cluster_succession_hear(&lab.s[1], 2, &m, 0), BASE_ERR_DATA);
    m.type = CLUSTER_STATE;
    m.body = json_object();
    assert_int_equal(cluster_succession_learn(&lab.s[1], 1, m.body), BASE_ERR_DATA);
    cluster_message_fini(&m);
}

/* Anything may be dead, cut, late or lost: never two leaders in one term (tell_lead), and never two
 * at the same time of which both have a majority of one view's hosts. */
static void test_histories(void **state)
{
    int leads = 0;

    (void)state;
    for (uint64_t number = 0; number < 1000; number++) {
        int hosts = 2 + (int)(number % (HOSTS - 1));

        begin(hosts);
        seed(number);
        lab.lose = (int)(draw() % 60);
        lab.dead[0] = draw() % 2 == 0;
        for (int i = 1; i < hosts; i++)
            lab.dead[i] = draw() % 8 == 0;
        for (int a = 0; a < hosts; a++)
            for (int b = 0; b < a; b++)
                lab.apart[a][b] = lab.apart[b][a] = draw() % 6 == 0;
        for (int round = 0; round < 60; round++) {
            int who = 1 + (int)(draw() % (uint32_t)(hosts - 1));

            if (round < 2 * hosts && !lab.dead[who])
                lose_coordinator(who);
            pass(0.1);
        }
        for (int i = 0; i < hosts; i++)
            leads += !lab.dead[i] && lab.s[i].stage == CLUSTER_LEADING;
        finish(state);
    }
    assert_true(leads > 300); /* most of them come to an end */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_lowest_leads, finish),
        cmocka_unit_test_teardown(test_deaths, finish),
        cmocka_unit_test_teardown(test_two_hosts_apart, finish),
        cmocka_unit_test_teardown(test_coordinator_lives, finish),
        cmocka_unit_test_teardown(test_late, finish),
        cmocka_unit_test_teardown(test_cut, finish),
        cmocka_unit_test_teardown(test_split_vote, finish),
        cmocka_unit_test_teardown(test_newer_state, finish),
        cmocka_unit_test_teardown(test_two_views, finish),
        cmocka_unit_test_teardown(test_lost_acknowledgement, finish),
        cmocka_unit_test_teardown(test_nothing_to_succeed, finish),
        cmocka_unit_test_teardown(test_nonsense, finish),
        cmocka_unit_test_teardown(test_histories, finish),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
