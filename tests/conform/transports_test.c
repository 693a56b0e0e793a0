/* SPDX-License-Identifier: MIT
 *
 * The same suite for every transport of the registry, over real processes (support/crew.h), and for
 * groups that mix them. PACELINE_TEST_SEED repeats a run, an argument (shm, tcp, tcp+tls, mixed)
 * picks one of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "comm/secret.h"
#include "comm/transport.h"
#include "support/crew.h"

enum { MAX_BYTES = 8 << 20, PATIENCE = 60 };

static const size_t sizes[] = {0,     1,     15,     16,     17,     1000,    4096,    65536,
                               65537, 99999, 262128, 262144, 262145, 1 << 20, 3000001, MAX_BYTES};

/* One way to reach each other. */
struct way {
    char name[40];
    const char *transport; /* NULL: automatic */
    int hosts;
    bool listens, secret;
    unsigned can; /* between all */
};

struct work { /* what a body is told */
    struct way way;
    uint64_t seed;
};

/* What bodies and test share. */
struct board {
    _Atomic int ready, go, counter[COMM_MAX_WORKERS], lost[COMM_MAX_WORKERS];
    _Atomic uint32_t victim;
};

static struct comm_secret secret = {.key = {1, 2, 3}};

struct dice {
    struct base_rng rng;
    uint32_t thrown;
};

static struct dice dice_of(uint64_t seed)
{
    return (struct dice){base_rng_of(seed, BASE_STREAM_TEST, 0, 0, 0), 0};
}

static int throw(struct dice * dice, size_t faces)
{
    return (int)(base_rng_u32(&dice->rng, dice->thrown++) % faces);
}

static double soon(void)
{
    return base_now() + PATIENCE;
}

static struct comm_group *open_group(struct crew_worker *me, uint32_t after)
{
    const struct work *work = me->argument;
    struct comm_group *group;
    struct comm_view view;

    crew_view(me, after, &view);
    crew_check(comm_group_open(me->endpoint, &view, work->way.transport, soon(), &group) ==
               BASE_OK);
    return group;
}

static struct crew *start(const struct work *work, int workers, crew_body *body)
{
    return crew_start(&(struct crew_setup){.workers = workers,
                                           .hosts = work->way.hosts,
                                           .listen = work->way.listens ? "127.0.0.1" : NULL,
                                           .secret = work->way.secret ? &secret : NULL,
                                           .board_bytes = sizeof(struct board),
                                           .body = body,
                                           .argument = (void *)work});
}

static void run(const struct work *work, int workers, crew_body *body)
{
    struct crew *crew = start(work, workers, body);

    assert_int_equal(crew_finish(crew, base_now() + 2 * PATIENCE), 0);
}

/* --- bytes --------------------------------------------------------------------------------- */

static void fill(uint8_t *bytes, size_t count, int from, int to, int channel)
{
    uint32_t x = (uint32_t)(from * 64 + to * 8 + channel) * 2654435761U + (uint32_t)count;

    for (size_t i = 0; i < count; i++, x = x * 1664525U + 1013904223U)
        bytes[i] = (uint8_t)(x >> 24);
}

static bool is_filled(const uint8_t *bytes, size_t count, int from, int to, int channel)
{
    uint32_t x = (uint32_t)(from * 64 + to * 8 + channel) * 2654435761U + (uint32_t)count;
    bool same = true;

    for (size_t i = 0; i < count; i++, x = x * 1664525U + 1013904223U)
        same &= bytes[i] == (uint8_t)(x >> 24);
    return same;
}

/* Messages of this rank with every other rank on some channels, both ways, all begun at once and
 * the sends first. */
struct exchange {
    struct comm_group *group;
    int first, channels; /* channels first … first + channels - 1 */
    size_t count;
    uint8_t *out[COMM_MAX_WORKERS][COMM_CHANNELS], *in[COMM_MAX_WORKERS][COMM_CHANNELS];
    struct comm_request requests[2 * COMM_MAX_WORKERS * COMM_CHANNELS];
    struct comm_request *all[2 * COMM_MAX_WORKERS * COMM_CHANNELS];
    int begun;
};

static void begin(struct exchange *x)
{
    int me = comm_group_rank(x->group), size = comm_group_size(x->group);

    x->begun = 0;
    for (int receives = 0; receives < 2; receives++) {
        for (int peer = 0; peer < size; peer++) {
            for (int c = x->first; peer != me && c < x->first + x->channels; c++) {
                struct comm_request *r = &x->requests[x->begun];
                uint8_t **bytes = receives ? &x->in[peer][c] : &x->out[peer][c];

                *bytes = base_calloc(x->count + 1, 1);
                x->all[x->begun++] = r;
                if (receives) {
                    comm_receive(x->group, peer, (enum comm_channel)c, 7, *bytes, x->count, r);
                } else {
                    fill(*bytes, x->count, me, peer, c);
                    comm_send(x->group, peer, (enum comm_channel)c, 7, *bytes, x->count, r);
                }
            }
        }
    }
}

/* Frees the buffers; the received ones must be right if the exchange ended well. */
static void finish(struct exchange *x, bool well)
{
    int me = comm_group_rank(x->group), size = comm_group_size(x->group);

    for (int peer = 0; peer < size; peer++) {
        for (int c = x->first; peer != me && c < x->first + x->channels; c++) {
            crew_check(!well || is_filled(x->in[peer][c], x->count, peer, me, c));
            crew_check(x->in[peer][c][x->count] == 0);
            base_free(x->in[peer][c]);
            base_free(x->out[peer][c]);
        }
    }
}

static base_status exchange(struct comm_group *group, int first, int channels, size_t count,
                            double deadline)
{
    struct exchange x = {.group = group, .first = first, .channels = channels, .count = count};
    base_status st;

    begin(&x);
    st = comm_wait(group, x.all, x.begun, deadline);
    finish(&x, st == BASE_OK);
    return st;
}

/* --- what must work ------------------------------------------------------------------------ */

static void every_size(struct crew_worker *me)
{
    struct comm_group *group = open_group(me, 0);

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        crew_check(exchange(group, COMM_COLLECTIVES, 1, sizes[i], soon()) == BASE_OK);
    crew_check(comm_group_bytes_sent(group) > MAX_BYTES);
    crew_check(comm_group_lost(group) == 0);
    comm_group_close(group);
}

static void every_channel(struct crew_worker *me)
{
    struct comm_group *group = open_group(me, 0);

    for (int round = 0; round < 3; round++)
        for (size_t i = 0; sizes[i] <= 1 << 20; i++)
            crew_check(exchange(group, 0, COMM_CHANNELS, sizes[i], soon()) == BASE_OK);
    comm_group_close(group);
}

/* Channels do not wait for each other: a message that nobody takes yet stops no other channel. */
static void channels_apart(struct crew_worker *me)
{
    struct comm_group *group = open_group(me, 0);
    struct exchange x = {.group = group, .first = COMM_CALLS, .channels = 1, .count = MAX_BYTES};

    if (me->index == 0)
        begin(&x); /* sends and receives; nobody answers before the others are through */
    for (int i = 0; i < 20; i++)
        crew_check(exchange(group, COMM_FORWARD, 2, 100000, soon()) == BASE_OK);
    if (me->index != 0)
        begin(&x);
    crew_check(comm_wait(group, x.all, x.begun, soon()) == BASE_OK);
    finish(&x, true);
    comm_group_close(group);
}

/* Messages of one channel arrive in order, however many are under way; wait_any ends with the
 * first. */
static void in_order(struct crew_worker *me)
{
    enum { COUNT = 200 };
    struct comm_group *group = open_group(me, 0);
    int size = comm_group_size(group), rank = comm_group_rank(group);
    int next = (rank + 1) % size, before = (rank + size - 1) % size, done = 0;
    struct comm_request sends[COUNT], receives[COUNT], *open[2 * COUNT];
    uint64_t out[COUNT], in[COUNT];

    for (int i = 0; i < COUNT; i++) {
        out[i] = (uint64_t)(rank * COUNT + i);
        comm_send(group, next, COMM_FORWARD, (uint32_t)i, &out[i], sizeof out[i], &sends[i]);
        comm_receive(group, before, COMM_FORWARD, (uint32_t)i, &in[i], sizeof in[i], &receives[i]);
        open[2 * i] = &sends[i];
        open[2 * i + 1] = &receives[i];
    }
    while (done < 2 * COUNT) {
        crew_check(comm_wait_any(group, open, 2 * COUNT, soon()) == BASE_OK);
        for (int i = 0; i < 2 * COUNT; i++) {
            if (open[i] != NULL && open[i]->done) {
                crew_check(i < 2 || open[i - 2] == NULL);
                open[i] = NULL;
                done++;
            }
        }
    }
    for (int i = 0; i < COUNT; i++)
        crew_check(in[i] == (uint64_t)(before * COUNT + i));
    comm_group_close(group);
}

static void barriers(struct crew_worker *me)
{
    struct comm_group *group = open_group(me, 0);
    struct board *board = me->board;
    int ranks[COMM_MAX_WORKERS], count = comm_group_locals(group, ranks);

    for (int i = 1; i <= 2000; i++) {
        atomic_store(&board->counter[me->index], i);
        crew_check(comm_local_barrier(group, soon()) == BASE_OK);
        for (int j = 0; j < count; j++)
            crew_check(atomic_load(&board->counter[ranks[j]]) >= i);
        crew_check(comm_local_barrier(group, soon()) == BASE_OK);
    }
    comm_group_close(group);
}

/* --- what must fail, and how --------------------------------------------------------------- */

/* Rank 0 sends tag 1 and 100 bytes; rank 1 expects something else. The rest is not concerned. */
static void mismatch(struct crew_worker *me, uint32_t tag, size_t count)
{
    struct comm_group *group = open_group(me, 0);
    struct comm_request request;
    struct comm_request *wait = &request;
    uint8_t bytes[200], clean[200];
    struct board *board = me->board;

    memset(bytes, 0x5a, sizeof bytes);
    memset(clean, 0x5a, sizeof clean);
    if (me->index == 0) {
        comm_send(group, 1, COMM_CALLS, 1, bytes, 100, wait);
        crew_check(comm_wait(group, &wait, 1, soon()) == BASE_OK);
    } else if (me->index == 1) {
        comm_receive(group, 0, COMM_CALLS, tag, bytes, count, wait);
        crew_check(comm_wait(group, &wait, 1, soon()) == BASE_ERR_DATA);
        crew_check(memcmp(bytes, clean, sizeof bytes) == 0);
        crew_check(comm_wait(group, NULL, 0, soon()) == BASE_ERR_DATA);
        atomic_store(&board->go, 1);
    }
    while (atomic_load(&board->go) == 0) /* nobody leaves before */
        usleep(1000);
    comm_group_close(group);
}

static void wrong_tag(struct crew_worker *me)
{
    mismatch(me, 2, 100);
}

static void too_long(struct crew_worker *me)
{
    mismatch(me, 1, 99);
}

static void too_short(struct crew_worker *me)
{
    mismatch(me, 1, 200);
}

static void silent_peer(struct crew_worker *me)
{
    struct comm_group *group = open_group(me, 0);
    struct board *board = me->board;
    struct comm_request request, *wait = &request;
    double start = base_now();
    uint8_t byte;

    if (me->index == 0) {
        comm_receive(group, 1, COMM_BACKWARD, 1, &byte, 1, wait);
        crew_check(comm_wait(group, &wait, 1, start + 0.2) == BASE_ERR_TIMEOUT);
        crew_check(base_now() >= start + 0.2 && base_now() < start + 5);
        crew_check(comm_wait(group, &wait, 1, soon()) == BASE_ERR_TIMEOUT); /* at once */
        crew_check(comm_group_lost(group) == 0);
        atomic_store(&board->go, 1);
    }
    while (atomic_load(&board->go) == 0)
        usleep(1000);
    comm_group_close(group);
}

static void silent_at_barrier(struct crew_worker *me)
{
    struct comm_group *group = open_group(me, 0);
    struct board *board = me->board;

    if (me->index == 0) {
        crew_check(comm_local_barrier(group, base_now() + 0.1) == BASE_ERR_TIMEOUT);
        crew_check(comm_local_barrier(group, soon()) == BASE_ERR_TIMEOUT);
        atomic_store(&board->go, 1);
    }
    while (atomic_load(&board->go) == 0)
        usleep(1000);
    comm_group_close(group);
}

/* A worker that never opens the group. */
static void silent_at_join(struct crew_worker *me)
{
    const struct work *work = me->argument;
    struct board *board = me->board;
    struct comm_group *group;
    struct comm_view view;

    crew_view(me, 0, &view);
    if (me->index == 0) {
        crew_check(comm_group_open(me->endpoint, &view, work->way.transport, base_now() + 0.2,
                                   &group) == BASE_ERR_TIMEOUT);
        crew_check(group == NULL);
        atomic_store(&board->go, 1);
    }
    while (atomic_load(&board->go) == 0)
        usleep(1000);
}

static void is_cancelled(struct crew_worker *me)
{
    struct comm_group *group = open_group(me, 0);
    struct board *board = me->board;
    struct comm_request request, *wait = &request;
    uint8_t byte;

    atomic_fetch_add(&board->ready, 1);
    comm_receive(group, me->index == 0 ? 1 : 0, COMM_CALLS, 1, &byte, 1, wait);
    crew_check(comm_wait(group, &wait, 1, soon()) == BASE_ERR_INTERRUPTED);
    comm_group_close(group);
}

static int open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

/* Groups come and go; files, mappings and memory do not pile up. */
static void reopen(struct crew_worker *me)
{
    enum { ROUNDS = 1000, SETTLED = 100 };
    const struct work *work = me->argument;
    struct comm_group *group;
    struct comm_view view;
    size_t memory = 0;
    int files = 0;

    crew_view(me, 0, &view);
    for (int i = 0; i < ROUNDS; i++, view.number++) {
        crew_check(comm_group_open(me->endpoint, &view, work->way.transport, soon(), &group) ==
                   BASE_OK);
        crew_check(exchange(group, i % COMM_CHANNELS, 1, 100, soon()) == BASE_OK);
        comm_group_close(group);
        if (i == SETTLED) {
            files = open_files();
            memory = mallinfo2().uordblks;
        }
    }
    crew_check(open_files() == files);
    /* malloc keeps some free chunks at hand; a hundred bytes lost a round would show all the same.
     */
    crew_check(mallinfo2().uordblks <= memory + 65536);
}

/* --- losses -------------------------------------------------------------------------------- */

/* Works until a loss, names the lost, works on with the survivors in the next view. */
static void survive(struct crew_worker *me)
{
    const struct work *work = me->argument;
    struct board *board = me->board;
    struct dice dice = dice_of(work->seed);
    struct comm_group *group;
    struct comm_view view;
    base_status st;
    uint32_t lost;

    crew_view(me, 0, &view);
    atomic_fetch_add(&board->ready, 1);
    st = comm_group_open(me->endpoint, &view, work->way.transport, soon(), &group);
    while (st == BASE_OK) {
        size_t count = sizes[throw(&dice, sizeof sizes / sizeof *sizes - 2)];

        if ((work->way.can & COMM_CAN_SHARE) != 0 && throw(&dice, 2) == 0)
            st = comm_local_barrier(group, soon());
        else
            st = exchange(group, throw(&dice, 3), 2, count, soon());
    }
    crew_check(st == BASE_ERR_PEER_LOST);
    lost =
        group != NULL ? comm_group_lost(group) : comm_endpoint_last_lost(me->endpoint, view.number);
    crew_check(lost == atomic_load(&board->victim));
    comm_group_close(group);
    group = open_group(me, view.number);
    crew_check(comm_group_size(group) == (int)view.size - 1);
    crew_check(comm_view_rank(comm_group_view(group), lost) < 0);
    for (int i = 0; i < 3; i++)
        crew_check(exchange(group, 0, COMM_CHANNELS, 100000, soon()) == BASE_OK);
    comm_group_close(group);
    atomic_fetch_add(&board->lost[me->index], 1);
}

static void kill_one(const struct work *work, int workers, int victim, double after)
{
    struct crew *crew = start(work, workers, survive);
    struct board *board = crew_board(crew);
    int told = 0;

    atomic_store(&board->victim, (uint32_t)victim + 1);
    while (atomic_load(&board->ready) < workers)
        usleep(200);
    usleep((useconds_t)(1e6 * after)); /* a random moment */
    crew_signal(crew, victim, SIGKILL);
    for (double end = soon(); told < workers - 1 && base_now() < end; usleep(1000)) {
        told = 0;
        for (int i = 0; i < workers; i++)
            told += atomic_load(&board->lost[i]);
    }
    assert_int_equal(told, workers - 1);
    assert_int_equal(crew_finish(crew, base_now() + PATIENCE), 0);
}

/* --- the suite ----------------------------------------------------------------------------- */

static uint64_t seed_of_run(void)
{
    const char *text = getenv("PACELINE_TEST_SEED");

    return text != NULL ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
}

static void test_messages(void **state)
{
    struct work *work = *state;

    run(work, 2, every_size);
    run(work, 4, every_size);
    run(work, 4, every_channel);
    run(work, 3, channels_apart);
    run(work, 4, in_order);
}

static void test_barrier(void **state)
{
    struct work *work = *state;

    if ((work->way.can & COMM_CAN_SHARE) == 0)
        skip();
    run(work, 2, barriers);
    run(work, 8, barriers); /* more than cores */
    run(work, 4, silent_at_barrier);
}

static void test_mismatch(void **state)
{
    struct work *work = *state;

    run(work, 2, wrong_tag);
    run(work, 4, wrong_tag);
    run(work, 2, too_long);
    run(work, 2, too_short);
}

static void test_timeout(void **state)
{
    struct work *work = *state;

    run(work, 2, silent_peer);
    run(work, 4, silent_peer);
    run(work, 4, silent_at_join);
}

static void test_cancel(void **state)
{
    struct work *work = *state;
    struct crew *crew = start(work, 3, is_cancelled);
    struct board *board = crew_board(crew);

    while (atomic_load(&board->ready) < 3)
        usleep(200);
    crew_cancel(crew);
    assert_int_equal(crew_finish(crew, soon()), 0);
}

static void test_reopen(void **state)
{
    run(*state, 2, reopen);
    run(*state, 4, reopen);
}

static void test_losses(void **state)
{
    struct work *work = *state;
    uint64_t seed = seed_of_run();
    struct dice dice = dice_of(seed);

    print_message("PACELINE_TEST_SEED=%llu\n", (unsigned long long)seed);
    for (int i = 0; i < 40; i++) {
        int workers = 2 + throw(&dice, 4);
        int victim = throw(&dice, (size_t)workers);

        work->seed = seed + (uint64_t)i;
        /* half of them while the group opens */
        kill_one(work, workers, victim, throw(&dice, 1000) * (i % 2 != 0 ? 1e-6 : 50e-6));
    }
}

/* Every transport alone; one that has sockets also encrypted; and two hosts of mixed groups. */
static int find_ways(struct work *works)
{
    bool sockets = false;
    int count = 0;

    for (size_t i = 0; i < comm_transport_count; i++) {
        const struct comm_transport *t = comm_transport_registry[i];
        bool listens = (t->can & COMM_CAN_SHARE) == 0;

        if ((t->can & COMM_CAN_NATIVE) != 0)
            continue; /* comes with its own launcher */
        sockets |= listens;
        for (int with_secret = 0; with_secret <= (int)listens; with_secret++) {
            struct way *way = &works[count++].way;

            *way = (struct way){.transport = t->name,
                                .hosts = 1,
                                .listens = listens,
                                .secret = with_secret,
                                .can = t->can};
            snprintf(way->name, sizeof way->name, "%s%s", t->name, with_secret ? "+tls" : "");
        }
    }
    if (sockets)
        works[count++].way = (struct way){.name = "mixed", .hosts = 2, .listens = true};
    return count;
}

int main(int argc, char **argv)
{
    struct work works[2 * 4 + 1] = {0};
    int count = find_ways(works), failed = 0;

    for (int i = 0; i < count; i++) {
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_prestate(test_messages, &works[i]),
            cmocka_unit_test_prestate(test_barrier, &works[i]),
            cmocka_unit_test_prestate(test_mismatch, &works[i]),
            cmocka_unit_test_prestate(test_timeout, &works[i]),
            cmocka_unit_test_prestate(test_cancel, &works[i]),
            cmocka_unit_test_prestate(test_reopen, &works[i]),
            cmocka_unit_test_prestate(test_losses, &works[i]),
        };

        if (argc > 1 && strcmp(argv[1], works[i].way.name) != 0)
            continue;
        print_message("over %s\n", works[i].way.name);
        failed += cmocka_run_group_tests_name(works[i].way.name, tests, NULL, NULL);
    }
    return failed;
}
