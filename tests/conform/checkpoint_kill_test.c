/* SPDX-License-Identifier: MIT
 *
 * The promise of checkpoints, tried: a writer killed at 200 random moments, and before every one
 * of its system calls, leaves only whole checkpoints, the newest included, right for their steps;
 * a checkpoint cut at any byte, or with any one of its bits flipped (over 10,000), never loads.
 * PACELINE_TEST_SEED repeats a run. (SIGKILL cannot show what a power cut does; fsync is for that.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "support/checkpoints.h"

enum { KILLS = 200, FLIPS = 10000, MAX_CALLS = 5000 };

static char *make_folder(const char *parent)
{
    char *dir = base_format("%s/paceline-kill-XXXXXX", parent);

    assert_non_null(mkdtemp(dir));
    return dir;
}

static void remove_folder(char *dir)
{
    assert_int_equal(base_remove_tree(dir), BASE_OK);
    base_free(dir);
}

static struct base_rng random_numbers(void)
{
    const char *text = getenv("PACELINE_TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);

    print_message("PACELINE_TEST_SEED=%llu\n", (unsigned long long)seed);
    return base_rng_of(seed, BASE_STREAM_TEST, 0, 0, 0);
}

static void assert_is_whole(const char *dir, const char *name)
{
    char *path = base_format("%s/%s", dir, name);
    struct store_checkpoint c;

    if (store_checkpoint_open(path, false, &c) != BASE_OK)
        fail_msg("%s", base_message());
    assert_true(support_is_right(&c));
    store_checkpoint_close(&c);
    base_free(path);
}

/* Every step-N in `dir` must be whole; returns the largest N. */
static uint64_t largest_step(const char *dir)
{
    uint64_t largest = 0;
    char **names;
    size_t count;

    assert_int_equal(base_list_dir(dir, &names, &count), BASE_OK);
    for (size_t i = 0; i < count; i++) {
        uint64_t step;

        if (strncmp(names[i], "step-", 5) != 0)
            continue;
        assert_is_whole(dir, names[i]);
        step = strtoull(names[i] + 5, NULL, 10);
        largest = step > largest ? step : largest;
    }
    base_names_free(names, count);
    return largest;
}

static uint64_t assert_newest_is_whole(const char *dir)
{
    struct store_checkpoint c;
    uint64_t step;

    if (store_checkpoint_open(dir, false, &c) != BASE_OK)
        fail_msg("%s", base_message());
    step = c.step;
    assert_true(support_is_right(&c));
    store_checkpoint_close(&c);
    assert_int_equal(step, largest_step(dir));
    return step;
}

static void assert_no_leftovers(const char *dir)
{
    char **names;
    size_t count;

    assert_int_equal(base_list_dir(dir, &names, &count), BASE_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(strncmp(names[i], "step-", 5), 0);
    base_names_free(names, count);
}

/* Saves `step` and its successors, reporting each; ends by being killed. */
static _Noreturn void save_for_ever(const char *dir, uint64_t step, int report)
{
    for (;; step++)
        if (support_save(dir, step, 2) != BASE_OK ||
            write(report, &step, sizeof step) != (ssize_t)sizeof step)
            _exit(1);
}

static void killed_at_random_moments(void **state)
{
    struct base_rng rng = random_numbers();
    char *dir = make_folder("/tmp");
    uint64_t newest = 4;
    double start = base_now(), save;

    (void)state;
    for (uint64_t step = 1; step <= newest; step++)
        assert_int_equal(support_save(dir, step, 2), BASE_OK);
    save = (base_now() - start) / (double)newest;
    for (uint32_t i = 0; i < KILLS; i++) {
        double delay = 2.5 * save * (double)base_rng_unit(base_rng_u32(&rng, i));
        bool again = i % 2 == 0; /* replaces the newest first */
        uint64_t reported = newest, step;
        int report[2], status;
        pid_t child;

        assert_int_equal(pipe(report), 0);
        if ((child = fork()) == 0)
            save_for_ever(dir, again ? newest : newest + 1, report[1]);
        close(report[1]);
        usleep((useconds_t)(1e6 * delay)); /* the random moment itself */
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        while (read(report[0], &step, sizeof step) == (ssize_t)sizeof step)
            reported = step;
        close(report[0]);
        newest = assert_newest_is_whole(dir);
        assert_true(newest >= reported); /* a commit that returned is there */
    }
    print_message("%d kills within %.0f ms, %llu checkpoints\n", KILLS, 2500 * save,
                  (unsigned long long)newest);
    assert_true(newest > 2); /* writers did get to work, if few on a loaded machine */
    assert_int_equal(support_save(dir, newest + 1, 2), BASE_OK);
    assert_no_leftovers(dir);
    remove_folder(dir);
}

/* As on a file system that cannot exchange two names. */
static int refuse_exchange(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_renameat2, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}

enum { WITHOUT_EXCHANGE = 1 };
enum outcome { KILLED, DONE, CANNOT_TRACE };

/* A call for memory: when they come differs from child to child, above all under sanitizers. */
static bool is_memory(uint64_t call)
{
    return call == __NR_brk || call == __NR_mmap || call == __NR_munmap || call == __NR_mprotect ||
           call == __NR_madvise || call == __NR_mremap;
}

/* Saves `step` in a child that is killed before its system call number `calls`, those for memory
 * not counted. */
static enum outcome save_and_kill(const char *dir, uint64_t step, int how, int calls)
{
    struct __ptrace_syscall_info info = {0};
    pid_t child = fork();
    int status;

    if (child == 0) {
        if ((how == WITHOUT_EXCHANGE && refuse_exchange() != 0) ||
            ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(2);
        raise(SIGSTOP);
        _exit(support_save(dir, step, 1) != BASE_OK);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSTOPPED(status))
        return CANNOT_TRACE;
    assert_int_equal(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD), 0);
    for (int seen = 0; seen <= calls;) {
        assert_int_equal(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            return DONE;
        }
        assert_true(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) > 0);
        seen += info.op == PTRACE_SYSCALL_INFO_ENTRY && !is_memory(info.entry.nr);
    }
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    return KILLED;
}

/* Whether folders are synced in time cannot be seen here, so memory is as good as a disk. */
static const char *quick_parent(void)
{
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

static void killed_before_every_call(uint64_t step, int how)
{
    uint64_t last = 0;
    int calls = 0;

    for (;; calls++) {
        char *dir = make_folder(quick_parent());
        enum outcome outcome;
        uint64_t newest;

        for (uint64_t i = 1; i <= 2; i++)
            assert_int_equal(support_save(dir, i, 0), BASE_OK);
        outcome = save_and_kill(dir, step, how, calls);
        if (outcome == CANNOT_TRACE) {
            remove_folder(dir);
            skip();
        }
        newest = assert_newest_is_whole(dir);
        assert_true(newest == 2 || newest == step);
        assert_true(newest >= last); /* once it is there, it stays */
        last = newest;
        assert_int_equal(support_save(dir, 4, 0), BASE_OK); /* and the next writer cleans up */
        assert_no_leftovers(dir);
        assert_int_equal(assert_newest_is_whole(dir), 4);
        remove_folder(dir);
        assert_true(calls < MAX_CALLS);
        if (outcome == DONE)
            break;
    }
    print_message("killed before each of %d system calls\n", calls);
    assert_int_equal(last, step);
    assert_true(calls > 30);
}

static void killed_while_adding(void **state)
{
    (void)state;
    killed_before_every_call(3, 0);
}

static void killed_while_replacing(void **state)
{
    (void)state;
    killed_before_every_call(2, 0);
}

static void killed_while_replacing_without_exchange(void **state)
{
    (void)state;
    killed_before_every_call(2, WITHOUT_EXCHANGE);
}

static const char *const files[] = {"manifest.json", "model.safetensors", "state.safetensors"};

static void assert_refused(const char *path, const char *file, const char *what, size_t where)
{
    struct store_checkpoint c;

    if (store_checkpoint_open(path, false, &c) == BASE_OK)
        fail_msg("%s with %s %zu was loaded", file, what, where);
    assert_null(c.manifest);
}

static void cut_anywhere(void **state)
{
    char *dir = make_folder(quick_parent()), *step = base_format("%s/step-7", dir);
    size_t cuts = 0;

    (void)state;
    assert_int_equal(support_save(dir, 7, 0), BASE_OK);
    for (size_t i = 0; i < 3; i++) {
        char *path = base_format("%s/%s", step, files[i]), *bytes;
        int fd = open(path, O_RDWR);
        size_t count;

        assert_true(fd >= 0);
        assert_int_equal(base_file_read(path, 1 << 16, &bytes, &count), BASE_OK);
        for (size_t length = count; length-- > 0; cuts++) {
            assert_int_equal(ftruncate(fd, (off_t)length), 0);
            assert_refused(step, files[i], "length", length);
        }
        assert_int_equal(pwrite(fd, bytes, count, 0), (ssize_t)count);
        close(fd);
        base_free(bytes);
        base_free(path);
    }
    assert_int_equal(assert_newest_is_whole(dir), 7);
    print_message("%zu cuts\n", cuts);
    base_free(step);
    remove_folder(dir);
}

/* Flips bit `bit`, counted over all files one after the other; returns the byte in its file. */
static size_t flip(const int fds[3], const size_t sizes[3], size_t bit, const char **file_p)
{
    size_t at = bit / 8;
    uint8_t byte;
    size_t i = 0;

    while (at >= sizes[i])
        at -= sizes[i++];
    assert_int_equal(pread(fds[i], &byte, 1, (off_t)at), 1);
    byte ^= (uint8_t)(1u << bit % 8);
    assert_int_equal(pwrite(fds[i], &byte, 1, (off_t)at), 1);
    *file_p = files[i];
    return at;
}

static void flipped_anywhere(void **state)
{
    char *dir = make_folder(quick_parent()), *step = base_format("%s/step-7", dir);
    size_t sizes[3], total = 0;
    const char *file;
    int fds[3];

    (void)state;
    assert_int_equal(support_save(dir, 7, 0), BASE_OK);
    for (size_t i = 0; i < 3; i++) {
        char *path = base_format("%s/%s", step, files[i]);
        struct stat info;

        fds[i] = open(path, O_RDWR);
        assert_int_equal(fstat(fds[i], &info), 0);
        total += sizes[i] = (size_t)info.st_size;
        base_free(path);
    }
    for (size_t bit = 0; bit < 8 * total; bit++) {
        size_t at = flip(fds, sizes, bit, &file);

        assert_refused(step, file, "a flipped bit at byte", at);
        flip(fds, sizes, bit, &file);
    }
    assert_int_equal(assert_newest_is_whole(dir), 7);
    print_message("%zu flips\n", 8 * total);
    assert_true(8 * total >= FLIPS);
    for (size_t i = 0; i < 3; i++)
        close(fds[i]);
    base_free(step);
    remove_folder(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_random_moments),
        cmocka_unit_test(killed_while_adding),
        cmocka_unit_test(killed_while_replacing),
        cmocka_unit_test(killed_while_replacing_without_exchange),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(flipped_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
