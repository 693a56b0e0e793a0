/* SPDX-License-Identifier: MIT
 *
 * Endpoints and groups inside one process: two workers as two threads over shared memory, and what
 * is refused. Whole crews of processes are in tests/conform/transports_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/comm_private.h"

enum { PATIENCE = 30, REGIONS = 8 };

static struct store { /* what an agent would hold */
    pthread_mutex_t lock;
    struct {
        char key[64];
        int fd;
    } regions[REGIONS];
    int count;
} store = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct comm_host *agent;

static const struct comm_view pair = {
    .number = 3, .size = 2, .members = {{.id = 1, .slot = 0}, {.id = 2, .slot = 1}}};

static base_status region(void *context, const char *key, size_t bytes, int *fd_p)
{
    struct store *s = context;
    int i = 0;

    pthread_mutex_lock(&s->lock);
    while (i < s->count && strcmp(s->regions[i].key, key) != 0)
        i++;
    if (i == s->count) {
        snprintf(s->regions[i].key, sizeof s->regions[i].key, "%s", key);
        s->regions[i].fd = memfd_create(key, MFD_CLOEXEC);
        assert_int_equal(ftruncate(s->regions[i].fd, (off_t)bytes), 0);
        s->count++;
    }
    *fd_p = dup(s->regions[i].fd);
    pthread_mutex_unlock(&s->lock);
    return BASE_OK;
}

static int make_agent(void **state)
{
    (void)state;
    return comm_host_create(&agent) != BASE_OK;
}

static int end_agent(void **state)
{
    (void)state;
    comm_host_close(agent);
    while (store.count > 0)
        close(store.regions[--store.count].fd);
    return 0;
}

static struct comm_endpoint *make_endpoint(uint32_t id, struct comm_host *host)
{
    struct comm_endpoint *endpoint;

    assert_int_equal(
        comm_endpoint_open(
            &(struct comm_endpoint_setup){
                .id = id, .job = "job", .host = host, .region = region, .context = &store},
            &endpoint),
        BASE_OK);
    return endpoint;
}

static double soon(void)
{
    return base_now() + PATIENCE;
}

/* --- two workers --------------------------------------------------------------------------- */

struct worker {
    uint32_t id;
    struct comm_endpoint *endpoint;
    base_status opened, sent, waited, again;
    uint32_t lost;
    pthread_t thread;
    _Atomic bool waits;
};

/* Exchanges a message, then waits for one that never comes. */
static void *live(void *argument)
{
    struct worker *me = argument;
    struct comm_request out, in, never;
    struct comm_request *both[] = {&out, NULL, &in}, *one = &never;
    struct comm_group *group;
    uint32_t told = 0;
    int peer = me->id == 1 ? 1 : 0;

    me->opened = comm_group_open(me->endpoint, &pair, NULL, soon(), &group);
    if (me->opened != BASE_OK)
        return NULL;
    comm_send(group, peer, COMM_CALLS, 5, &me->id, sizeof me->id, &out);
    comm_receive(group, peer, COMM_CALLS, 5, &told, sizeof told, &in);
    me->sent = comm_wait(group, both, 3, soon());
    if (told != 3 - me->id || comm_local_barrier(group, soon()) != BASE_OK)
        me->sent = BASE_ERR_INTERNAL;
    atomic_store(&me->waits, true);
    comm_receive(group, peer, COMM_CALLS, 5, &told, sizeof told, &never);
    me->waited = comm_wait(group, &one, 1, soon());
    me->again = comm_local_barrier(group, soon());
    me->lost = comm_group_lost(group);
    comm_group_close(group);
    return NULL;
}

static void start_pair(struct worker workers[2])
{
    for (uint32_t i = 0; i < 2; i++) {
        workers[i] = (struct worker){.id = i + 1, .endpoint = make_endpoint(i + 1, agent)};
        pthread_create(&workers[i].thread, NULL, live, &workers[i]);
    }
    for (int i = 0; i < 2; i++)
        while (!atomic_load(&workers[i].waits))
            usleep(1000);
}

static void end_pair(struct worker workers[2], base_status how, uint32_t lost)
{
    for (int i = 0; i < 2; i++) {
        pthread_join(workers[i].thread, NULL);
        comm_endpoint_close(workers[i].endpoint);
        assert_int_equal(workers[i].opened, BASE_OK);
        assert_int_equal(workers[i].sent, BASE_OK);
        assert_int_equal(workers[i].waited, how);
        assert_int_equal(workers[i].again, how);
        assert_int_equal(workers[i].lost, lost);
    }
}

static void an_alarm_ends_waits(void **state)
{
    struct worker workers[2];

    (void)state;
    start_pair(workers);
    comm_host_alarm(agent, pair.number - 1, 8); /* of an older view: it does not concern this one */
    comm_host_alarm(agent, pair.number, 9);
    end_pair(workers, BASE_ERR_PEER_LOST, 9);
}

static void news_end_waits(void **state)
{
    struct worker workers[2];

    (void)state;
    start_pair(workers);
    comm_endpoint_lost(workers[0].endpoint, pair.number, 7);
    comm_endpoint_lost(workers[1].endpoint, pair.number + 2, 7);
    end_pair(workers, BASE_ERR_PEER_LOST, 7);
}

static void cancelling_ends_waits(void **state)
{
    struct worker workers[2];

    (void)state;
    start_pair(workers);
    comm_endpoint_cancel(workers[0].endpoint);
    comm_endpoint_cancel(workers[1].endpoint);
    end_pair(workers, BASE_ERR_INTERRUPTED, 0);
}

/* A group that did not open is void, and says so at every call. */
static base_status opens(struct comm_endpoint *endpoint, const char *transport, double deadline)
{
    struct comm_group *group;
    base_status st = comm_group_open(endpoint, &pair, transport, deadline, &group);
    struct comm_request request, *list[] = {&request};

    assert_non_null(group);
    if (st != BASE_OK && comm_group_rank(group) >= 0) {
        comm_send(group, 1 - comm_group_rank(group), COMM_CALLS, 1, "", 0, &request);
        assert_int_equal(comm_wait(group, list, 1, soon()), st);
    }
    comm_group_close(group);
    return st;
}

/* The peer does not come, and a newer view is there already: no alarm follows that would end the
 * wait. */
static void a_newer_view_ends_opening(void **state)
{
    struct comm_endpoint *endpoint = make_endpoint(1, agent);
    double deadline = soon();

    (void)state;
    comm_endpoint_newer(endpoint, pair.number + 1);
    assert_int_equal(opens(endpoint, NULL, deadline), BASE_ERR_PEER_LOST);
    assert_true(base_now() < deadline);
    comm_endpoint_close(endpoint);
}

static void opens_once_a_view(void **state)
{
    struct comm_endpoint *endpoint = make_endpoint(1, agent);

    (void)state;
    assert_int_equal(opens(endpoint, NULL, base_now() + 0.01), BASE_ERR_TIMEOUT);
    assert_int_equal(opens(endpoint, NULL, soon()), BASE_ERR_INTERNAL);
    comm_endpoint_close(endpoint);
}

/* --- alone, and refused -------------------------------------------------------------------- */

static void alone(void **state)
{
    const struct comm_view view = {.number = 1, .size = 1, .members = {{.id = 1}}};
    struct comm_endpoint *endpoint = make_endpoint(1, NULL);
    struct comm_group *group;
    int ranks[COMM_MAX_WORKERS];

    (void)state;
    assert_int_equal(comm_group_open(endpoint, &view, NULL, soon(), &group), BASE_OK);
    assert_int_equal(comm_group_rank(group), 0);
    assert_int_equal(comm_group_size(group), 1);
    assert_int_equal(comm_group_locals(group, ranks), 1);
    assert_true((comm_group_can_all(group) & COMM_CAN_RECOVER) != 0);
    assert_int_equal(comm_local_barrier(group, soon()), BASE_OK);
    assert_int_equal(comm_wait(group, NULL, 0, soon()), BASE_OK);
    assert_int_equal(comm_wait_any(group, NULL, 0, soon()), BASE_OK);
    assert_int_equal(comm_group_bytes_sent(group), 0);
    assert_int_equal(comm_group_lost(group), 0);
    comm_endpoint_lost(endpoint, view.number, 9); /* is known without a wait */
    assert_int_equal(comm_group_lost(group), 9);
    comm_group_close(group);
    comm_endpoint_close(endpoint);
    comm_group_close(NULL);
    comm_endpoint_close(NULL);
}

static void refuses_what_is_wrong(void **state)
{
    struct comm_endpoint *stranger = make_endpoint(9, agent), *deaf = make_endpoint(1, NULL);

    (void)state;
    assert_int_equal(opens(stranger, NULL, soon()), BASE_ERR_INTERNAL);
    assert_int_equal(opens(deaf, "pigeons", soon()), BASE_ERR_USAGE);
    assert_int_equal(opens(deaf, "shm", soon()), BASE_ERR_USAGE);
    assert_int_equal(opens(deaf, NULL, soon()), BASE_ERR_USAGE);
    comm_endpoint_lost(deaf, pair.number, 2); /* before it is opened */
    assert_int_equal(opens(deaf, NULL, soon()), BASE_ERR_PEER_LOST);
    assert_int_equal(comm_endpoint_last_lost(deaf, pair.number), 2);
    assert_int_equal(comm_endpoint_last_lost(deaf, pair.number + 1), 0);
    comm_endpoint_close(stranger);
    comm_endpoint_close(deaf);
}

static void shares_memory(void **state)
{
    struct comm_endpoint *a = make_endpoint(1, agent), *b = make_endpoint(2, agent);
    struct comm_shared one, other, wrong = {0};

    (void)state;
    assert_int_equal(comm_shared_open(a, "view/1/x", 8192, &one), BASE_OK);
    assert_int_equal(comm_shared_open(b, "view/1/x", 8192, &other), BASE_OK);
    assert_ptr_not_equal(one.at, other.at);
    memset(one.at, 7, one.bytes);
    assert_int_equal(((uint8_t *)other.at)[8191], 7);
    assert_int_equal(comm_shared_open(b, "view/1/x", 4096, &wrong), BASE_ERR_DATA);
    assert_null(wrong.at);
    comm_shared_close(&wrong);
    comm_shared_close(&one);
    comm_shared_close(&one);
    comm_shared_close(&other);
    comm_endpoint_close(a);
    comm_endpoint_close(b);
}

static bool rings(const struct comm_endpoint *endpoint)
{
    struct pollfd bell = {.fd = endpoint->bell, .events = POLLIN};

    return poll(&bell, 1, 0) == 1;
}

static void a_bell_rings_once(void **state)
{
    struct comm_endpoint *endpoint = make_endpoint(1, NULL);

    (void)state;
    assert_false(rings(endpoint));
    comm_endpoint_lost(endpoint, 3, 1);
    comm_endpoint_lost(endpoint, 2, 5);
    assert_true(rings(endpoint));
    comm_endpoint_hush(endpoint);
    assert_false(rings(endpoint));
    comm_endpoint_hush(endpoint);
    assert_int_equal(comm_endpoint_last_lost(endpoint, 2), 1);
    comm_endpoint_close(endpoint);
}

static void knows_hosts(void **state)
{
    struct comm_endpoint *endpoint = make_endpoint(3, agent);
    struct comm_group group = {.endpoint = endpoint,
                               .rank = 2,
                               .view = {.number = 1,
                                        .size = 5,
                                        .members = {{.id = 1, .host = 4},
                                                    {.id = 2, .host = 0},
                                                    {.id = 3, .host = 4},
                                                    {.id = 4, .host = 2},
                                                    {.id = 5, .host = 0}}}};
    int ranks[COMM_MAX_WORKERS];

    (void)state;
    assert_int_equal(comm_group_locals(&group, ranks), 2);
    assert_int_equal(ranks[0], 0);
    assert_int_equal(ranks[1], 2);
    comm_endpoint_close(endpoint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_alarm_ends_waits, make_agent, end_agent),
        cmocka_unit_test_setup_teardown(news_end_waits, make_agent, end_agent),
        cmocka_unit_test_setup_teardown(cancelling_ends_waits, make_agent, end_agent),
        cmocka_unit_test_setup_teardown(opens_once_a_view, make_agent, end_agent),
        cmocka_unit_test_setup_teardown(a_newer_view_ends_opening, make_agent, end_agent),
        cmocka_unit_test_setup_teardown(alone, make_agent, end_agent),
        cmocka_unit_test_setup_teardown(refuses_what_is_wrong, make_agent, end_agent),
        cmocka_unit_test_setup_teardown(shares_memory, make_agent, end_agent),
        cmocka_unit_test_setup_teardown(a_bell_rings_once, make_agent, end_agent),
        cmocka_unit_test_setup_teardown(knows_hosts, make_agent, end_agent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
