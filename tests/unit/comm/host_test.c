/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/futex.h"
#include "comm/host.h"

enum { PATIENCE = 30 };

static struct comm_host *agent;

static int make_agent(void **state)
{
    (void)state;
    return comm_host_create(&agent) != BASE_OK;
}

static int end_agent(void **state)
{
    (void)state;
    comm_host_close(agent);
    return 0;
}

/* A worker that attaches, says so on a pipe, and then ends as it is told. */
static pid_t start_worker(int slot, bool closes, bool stays)
{
    struct comm_host *host;
    int said[2];
    pid_t pid;
    char ok;

    assert_int_equal(pipe(said), 0);
    pid = fork();
    if (pid == 0) {
        if (comm_host_attach(comm_host_fd(agent), slot, &host) != BASE_OK ||
            write(said[1], "+", 1) != 1)
            _exit(9);
        while (stays)
            pause();
        if (closes)
            comm_host_close(host);
        _exit(0);
    }
    close(said[1]);
    assert_int_equal(read(said[0], &ok, 1), 1);
    close(said[0]);
    return pid;
}

static int next_dead(double seconds)
{
    int slot = -2;

    assert_int_equal(comm_host_watch(agent, base_now() + seconds, &slot), BASE_OK);
    return slot;
}

static void sees_a_kill_once(void **state)
{
    pid_t pid = start_worker(3, false, true);

    (void)state;
    assert_int_equal(next_dead(0), -1);
    assert_false(comm_host_died(agent, 3));
    kill(pid, SIGKILL);
    assert_int_equal(next_dead(PATIENCE), 3);
    assert_int_equal(next_dead(0.01), -1);
    assert_true(comm_host_died(agent, 3));
    waitpid(pid, NULL, 0);
    comm_host_clear(agent, 3); /* the news of it are old from now on */
    assert_false(comm_host_died(agent, 3));
}

static void sees_an_exit_without_good_bye(void **state)
{
    pid_t pid = start_worker(COMM_HOST_SLOTS - 1, false, false);

    (void)state;
    assert_int_equal(next_dead(PATIENCE), COMM_HOST_SLOTS - 1);
    waitpid(pid, NULL, 0);
}

static void a_good_bye_is_no_death(void **state)
{
    pid_t pid = start_worker(5, true, false);

    (void)state;
    waitpid(pid, NULL, 0);
    assert_int_equal(next_dead(0.01), -1);
}

static void sees_two_at_once(void **state)
{
    pid_t pids[2] = {start_worker(10, false, true), start_worker(11, false, true)};
    int first, second;

    (void)state;
    kill(pids[0], SIGKILL);
    kill(pids[1], SIGKILL);
    waitpid(pids[0], NULL, 0);
    waitpid(pids[1], NULL, 0);
    first = next_dead(PATIENCE);
    second = next_dead(PATIENCE);
    assert_int_equal(first + second, 21);
    assert_int_equal(next_dead(0), -1);
}

static void a_slot_has_one_worker(void **state)
{
    pid_t pid = start_worker(0, false, true);
    struct comm_host *host;

    (void)state;
    assert_int_equal(comm_host_attach(comm_host_fd(agent), 0, &host), BASE_ERR_DATA);
    assert_null(host);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(next_dead(PATIENCE), 0);
    assert_int_equal(comm_host_attach(comm_host_fd(agent), 0, &host), BASE_ERR_DATA);
    comm_host_clear(agent, 0);
    pid = start_worker(0, false, true); /* again, and its death is news again */
    assert_int_equal(next_dead(0), -1);
    kill(pid, SIGKILL);
    assert_int_equal(next_dead(PATIENCE), 0);
    waitpid(pid, NULL, 0);
    comm_host_clear(agent, 0);
}

static void refuses_what_is_wrong(void **state)
{
    struct comm_host *host;
    int other = memfd_create("other", MFD_CLOEXEC);

    (void)state;
    assert_int_equal(comm_host_attach(comm_host_fd(agent), -1, &host), BASE_ERR_DATA);
    assert_int_equal(comm_host_attach(comm_host_fd(agent), COMM_HOST_SLOTS, &host), BASE_ERR_DATA);
    assert_int_equal(comm_host_attach(-1, 0, &host), BASE_ERR_DATA);
    assert_int_equal(comm_host_attach(other, 0, &host), BASE_ERR_DATA);
    assert_null(host);
    close(other);
    comm_host_close(NULL);
}

static void *poke(void *argument)
{
    (void)argument;
    comm_host_poke(agent);
    return NULL;
}

static void is_poked(void **state)
{
    double start = base_now();
    pthread_t thread;

    (void)state;
    pthread_create(&thread, NULL, poke, NULL);
    assert_int_equal(next_dead(PATIENCE), -1);
    assert_true(base_now() < start + PATIENCE / 2);
    pthread_join(thread, NULL);
    assert_int_equal(next_dead(0.01), -1); /* once */
    comm_host_poke(agent);                 /* no thread watches: the next watch returns at once */
    assert_int_equal(next_dead(PATIENCE), -1);
    assert_true(base_now() < start + PATIENCE / 2);
}

static void names_the_lost(void **state)
{
    _Atomic uint32_t *word = comm_host_alarm_word(agent);
    uint32_t before = atomic_load(word);

    (void)state;
    assert_int_equal(comm_host_lost(agent, 1), 0);
    comm_host_alarm(agent, 4, 17);
    assert_int_not_equal(atomic_load(word), before);
    assert_int_equal(comm_host_lost(agent, 1), 17); /* older views end, too */
    assert_int_equal(comm_host_lost(agent, 4), 17);
    assert_int_equal(comm_host_lost(agent, 5), 0);
    comm_host_alarm(agent, 3, 18); /* late news hide nothing */
    assert_int_equal(comm_host_lost(agent, 4), 17);
    comm_host_alarm(agent, 5, 19);
    assert_int_equal(comm_host_lost(agent, 5), 19);
}

static void an_alarm_wakes(void **state)
{
    struct comm_host *host;
    int status;
    pid_t pid;

    (void)state;
    pid = fork();
    if (pid == 0) {
        if (comm_host_attach(comm_host_fd(agent), 20, &host) != BASE_OK)
            _exit(9);
        for (double end = base_now() + PATIENCE; base_now() < end;) {
            _Atomic uint32_t *word = comm_host_alarm_word(host);
            uint32_t seen = atomic_load(word);

            if (comm_host_lost(host, 100) == 42)
                _exit(0);
            comm_futex_wait((struct comm_futex[]){{word, seen}}, 1, end);
        }
        _exit(8);
    }
    comm_host_alarm(agent, 100, 42);
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(next_dead(PATIENCE), 20);
}

static void *attach_and_end(void *argument)
{
    struct comm_host **host_p = argument;

    return comm_host_attach(comm_host_fd(agent), 30, host_p) == BASE_OK ? agent : NULL;
}

/* The rule of the header: the word goes with the thread that attached. */
static void a_thread_that_ends_is_a_death(void **state)
{
    struct comm_host *host = NULL;
    pthread_t thread;
    void *attached;

    (void)state;
    pthread_create(&thread, NULL, attach_and_end, &host);
    pthread_join(thread, &attached);
    assert_non_null(attached);
    assert_int_equal(next_dead(PATIENCE), 30);
#ifndef __SANITIZE_THREAD__ /* it objects to unlocking for a thread that is gone */
    comm_host_close(host);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sees_a_kill_once, make_agent, end_agent),
        cmocka_unit_test_setup_teardown(sees_an_exit_without_good_bye, make_agent, end_agent),
        cmocka_unit_test_setup_teardown(a_good_bye_is_no_death, make_agent, end_agent),
        cmocka_unit_test_setup_teardown(sees_two_at_once, make_agent, end_agent),
        cmocka_unit_test_setup_teardown(a_slot_has_one_worker, make_agent, end_agent),
        cmocka_unit_test_setup_teardown(refuses_what_is_wrong, make_agent, end_agent),
        cmocka_unit_test_setup_teardown(is_poked, make_agent, end_agent),
        cmocka_unit_test_setup_teardown(names_the_lost, make_agent, end_agent),
        cmocka_unit_test_setup_teardown(an_alarm_wakes, make_agent, end_agent),
        cmocka_unit_test_setup_teardown(a_thread_that_ends_is_a_death, make_agent, end_agent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
