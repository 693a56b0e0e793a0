/* SPDX-License-Identifier: MIT
 *
 * The scheduler. A thread that may run has the baton: it posts the semaphore of the thread that it
 * has picked and waits for its own. All state here belongs to the thread with the baton.
 */
#include "sim/world.h"

#include <inttypes.h>
#include <math.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"

/* Seconds that a look at the clock takes: a loop that waits for a moment gets there. */
static const double LOOK = 1e-7;
/* One wait in so many ends without cause, as condition variables may. */
enum {
    SPURIOUS = 128,
    STACK_BYTES = 512 << 10,
    MAX_PROCESSES = 256,
    MAX_LOCKS = 16,
    MANY_LOOKS = 10000000
};

struct sim_process {
    char name[SIM_NAME];
    int number;
    bool dead;
    double stalled_until;
    uint64_t slices, dies_at; /* dies_at 0: does not */
    int locks[MAX_LOCKS];     /* descriptors with a lock on a file */
    int lock_count;
};

enum state { READY, WAITING, ENDED };

struct thread {
    char name[SIM_NAME];
    int number;
    struct sim_process *process;
    enum state state;
    const void *address; /* WAITING: for a wake of it, or … */
    double deadline;     /* … for this moment */
    base_thread_body *body;
    void *argument;
    sem_t baton;
};

static struct {
    double now, limit;
    struct base_rng rng;
    uint32_t drawn, words[4];
    struct thread *threads[SIM_MAX_THREADS];
    int thread_count;
    struct sim_process *processes[MAX_PROCESSES];
    int process_count;
    struct thread *runs;
    void (*tell_death)(struct sim_process *process);
    FILE *trace;
    uint64_t digest, switches;
    int raised;
    int looks; /* at the clock, since the last switch */
} world;

/* ---- randomness ---- */

static uint32_t next_word(void)
{
    if (world.drawn % 4 == 0)
        base_rng_block(&world.rng, world.drawn / 4, world.words);
    return world.words[world.drawn++ % 4];
}

uint32_t sim_random(uint32_t below)
{
    return (uint32_t)(((uint64_t)next_word() * below) >> 32);
}

double sim_unit(void)
{
    return (double)next_word() * 0x1p-32;
}

double sim_between(double low, double high)
{
    return low + (high - low) * sim_unit();
}

double sim_spread(double low, double high)
{
    return low * pow(high / low, sim_unit());
}

/* ---- the trace ---- */

static void digest(const void *bytes, size_t count)
{
    const uint8_t *at = bytes;

    for (size_t i = 0; i < count; i++) /* FNV-1a */
        world.digest = (world.digest ^ at[i]) * UINT64_C(0x100000001b3);
}

void sim_trace(const char *format, ...)
{
    char text[512];
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    digest(&world.now, sizeof world.now);
    digest(text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
    if (world.trace != NULL)
        fprintf(world.trace, "%12.6f  %-10s %-10s %s\n", world.now, world.runs->process->name,
                world.runs->name, text);
}

void sim_tell(const char *format, ...)
{
    va_list args;

    if (world.trace == NULL)
        return;
    fprintf(world.trace, "%12.6f  %-10s %-10s ", world.now, world.runs->process->name,
            world.runs->name);
    va_start(args, format);
    vfprintf(world.trace, format, args);
    va_end(args);
    fputc('\n', world.trace);
}

uint64_t sim_digest(void)
{
    return world.digest;
}

uint64_t sim_switches(void)
{
    return world.switches;
}

static void print_threads(void)
{
    for (int i = 0; i < world.thread_count; i++) {
        const struct thread *t = world.threads[i];

        if (t->state == ENDED || t->process->dead)
            continue;
        fprintf(stderr, "  %-12s %-12s ", t->process->name, t->name);
        if (t == world.runs)
            fprintf(stderr, "runs\n");
        else if (t->state == READY)
            fprintf(stderr, "could run\n");
        else if (isinf(t->deadline))
            fprintf(stderr, "waits for a signal\n");
        else
            fprintf(stderr, "waits for a signal, or for %.6f s\n", t->deadline);
    }
}

void sim_fail(const char *format, ...)
{
    va_list args;

    fprintf(stderr, "FAILED at %.6f s: ", world.now);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\nthreads:\n");
    print_threads();
    if (world.trace != NULL)
        fflush(world.trace);
    fflush(stderr);
    _exit(SIM_FAILED);
}

/* ---- the scheduler ---- */

/* When `t` can run; INFINITY: only a wake helps. */
static double when(const struct thread *t)
{
    double at = t->state == READY ? world.now : t->state == WAITING ? t->deadline : INFINITY;

    if (t->process->dead)
        return INFINITY;
    return fmax(at, t->process->stalled_until);
}

static struct thread *pick(void)
{
    struct thread *can[SIM_MAX_THREADS];
    uint32_t count = 0;
    double next = INFINITY;

    for (int i = 0; i < world.thread_count; i++) {
        double at = when(world.threads[i]);

        if (at <= world.now)
            can[count++] = world.threads[i];
        next = fmin(next, at);
    }
    if (count > 0)
        return can[count > 1 ? sim_random(count) : 0];
    if (isinf(next))
        sim_fail("deadlock: no thread can run, and none waits for a moment");
    world.now = next;
    if (world.now > world.limit)
        sim_fail("it is not over after %g s", world.limit);
    return pick();
}

/* Gives the baton to the next one; returns when it is this thread's turn. */
static void pass_on(void)
{
    struct thread *me = world.runs, *next = pick();

    while (next->process->dies_at != 0 && ++next->process->slices == next->process->dies_at) {
        sim_process_kill(next->process);
        next = pick();
    }
    next->state = READY;
    world.switches++;
    world.looks = 0;
    digest(&next->number, sizeof next->number);
    if (next == me)
        return;
    world.runs = next;
    sem_post(&next->baton);
    while (sem_wait(&me->baton) != 0)
        continue;
}

void sim_yield(void)
{
    pass_on();
}

static double world_now(void)
{
    if (++world.looks > MANY_LOOKS)
        sim_fail("a thread looks at the clock for ever without waiting");
    return world.now += LOOK;
}

static void world_wait(const void *address, double deadline)
{
    struct thread *me = world.runs;

    me->address = address;
    me->deadline = deadline;
    me->state = sim_random(SPURIOUS) == 0 ? READY : WAITING;
    pass_on();
    me->address = NULL;
}

static void world_wake(const void *address)
{
    for (int i = 0; i < world.thread_count; i++)
        if (world.threads[i]->state == WAITING && world.threads[i]->address == address)
            world.threads[i]->state = READY;
}

/* ---- threads ---- */

static struct thread *add_thread(struct sim_process *process, const char *name,
                                 base_thread_body *body, void *argument)
{
    struct thread *t = base_calloc(1, sizeof *t);

    if (world.thread_count == SIM_MAX_THREADS)
        sim_fail("more than %d threads", SIM_MAX_THREADS);
    snprintf(t->name, sizeof t->name, "%s", name);
    t->number = world.thread_count;
    t->process = process;
    t->body = body;
    t->argument = argument;
    sem_init(&t->baton, 0, 0);
    world.threads[world.thread_count++] = t;
    return t;
}

static void *live(void *argument)
{
    struct thread *me = argument;

    while (sem_wait(&me->baton) != 0)
        continue;
    me->body(me->argument);
    me->state = ENDED;
    world_wake(me);
    pass_on(); /* for good */
    return NULL;
}

static struct thread *start(struct sim_process *process, const char *name, base_thread_body *body,
                            void *argument)
{
    struct thread *t = add_thread(process, name, body, argument);
    pthread_attr_t attributes;
    pthread_t machine;

    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (pthread_create(&machine, &attributes, live, t) != 0) {
        perror("pthread_create");
        abort();
    }
    pthread_attr_destroy(&attributes);
    return t;
}

static void *world_start(const char *name, base_thread_body *body, void *argument)
{
    struct thread *t = start(world.runs->process, name, body, argument);

    sim_yield();
    return t;
}

static void world_join(void *thread)
{
    struct thread *t = thread;

    while (t->state != ENDED)
        world_wait(t, INFINITY);
}

static const struct base_world simulated = {.now = world_now,
                                            .start = world_start,
                                            .join = world_join,
                                            .wait = world_wait,
                                            .wake = world_wake};

void sim_begin(uint64_t seed, double limit, FILE *trace)
{
    world.now = 1; /* 0 is "never" in some places */
    world.limit = limit;
    world.trace = trace;
    world.rng = base_rng_of(seed, BASE_STREAM_TEST, 0, 0, 0);
    world.digest = UINT64_C(0xcbf29ce484222325);
    world.runs = add_thread(sim_process_new("world"), "main", NULL, NULL);
    base_world = &simulated;
}

/* ---- processes ---- */

struct sim_process *sim_process_new(const char *name)
{
    struct sim_process *p = base_calloc(1, sizeof *p);

    if (world.process_count == MAX_PROCESSES)
        sim_fail("more than %d processes", MAX_PROCESSES);
    snprintf(p->name, sizeof p->name, "%s", name);
    p->number = world.process_count;
    world.processes[world.process_count++] = p;
    return p;
}

struct sim_process *sim_process_self(void)
{
    return world.runs->process;
}

int sim_process_number(const struct sim_process *p)
{
    return p->number;
}

bool sim_process_is_alive(const struct sim_process *p)
{
    return !p->dead;
}

void sim_process_run(struct sim_process *p, const char *thread, base_thread_body *body,
                     void *argument)
{
    start(p, thread, body, argument);
}

int __real_flock(int fd, int operation);

void sim_process_kill(struct sim_process *p)
{
    if (p->dead)
        return;
    sim_trace("%s dies", p->name);
    p->dead = true;
    for (int i = 0; i < p->lock_count; i++)
        __real_flock(p->locks[i], LOCK_UN);
    if (world.tell_death != NULL)
        world.tell_death(p);
    if (p == world.runs->process)
        pass_on(); /* for good */
}

void sim_process_kill_at(struct sim_process *p, uint64_t slice)
{
    p->dies_at = p->slices + slice;
}

void sim_process_stall(struct sim_process *p, double seconds)
{
    sim_trace("%s stalls for %.3f s", p->name, seconds);
    p->stalled_until = fmax(p->stalled_until, world.now + seconds);
}

bool sim_process_is_stalled(const struct sim_process *p)
{
    return p->stalled_until > world.now;
}

void sim_on_death(void (*tell)(struct sim_process *process))
{
    world.tell_death = tell;
}

/* ---- what else a process knows of the machine; the linker puts these in place (--wrap) ---- */

int __wrap_flock(int fd, int operation);
pid_t __wrap_getpid(void);
time_t __wrap_time(time_t *now_p);
int __wrap_close(int fd);
int __real_close(int fd);
pid_t __real_getpid(void);
time_t __real_time(time_t *now_p);

/* A dead process lets go of its locks. */
int __wrap_flock(int fd, int operation)
{
    int result = __real_flock(fd, operation);
    struct sim_process *p = base_world != NULL ? world.runs->process : NULL;

    if (p != NULL && result == 0 && (operation & LOCK_EX) != 0 && p->lock_count < MAX_LOCKS)
        p->locks[p->lock_count++] = fd;
    return result;
}

int __wrap_close(int fd)
{
    struct sim_process *p = base_world != NULL ? world.runs->process : NULL;

    for (int i = 0; p != NULL && i < p->lock_count; i++)
        if (p->locks[i] == fd)
            p->locks[i] = p->locks[--p->lock_count];
    return __real_close(fd);
}

/* Others see the files between two operations, and a process may die there. */
int __wrap_rename(const char *from, const char *to);
int __real_rename(const char *from, const char *to);
int __wrap_fsync(int fd);
int __real_fsync(int fd);

int __wrap_rename(const char *from, const char *to)
{
    if (base_world != NULL)
        sim_yield();
    return __real_rename(from, to);
}

int __wrap_fsync(int fd)
{
    if (base_world != NULL)
        sim_yield();
    return __real_fsync(fd);
}

pid_t __wrap_getpid(void)
{
    return base_world != NULL ? 1000 + world.runs->process->number : __real_getpid();
}

time_t __wrap_time(time_t *now_p)
{
    time_t now;

    if (base_world == NULL)
        return __real_time(now_p);
    now = 1700000000 + (time_t)world.now;
    if (now_p != NULL)
        *now_p = now;
    return now;
}

/* The machine's pressures are none of the simulated ones. */
int __wrap_getrusage(int who, struct rusage *usage);
double __wrap_cluster_monitor_throttled(void);
double __wrap_cluster_monitor_squeezed(void);
double __wrap_cluster_monitor_waited(void);

int __wrap_getrusage(int who, struct rusage *usage)
{
    (void)who;
    *usage = (struct rusage){0};
    return 0;
}

double __wrap_cluster_monitor_throttled(void)
{
    return -1;
}

double __wrap_cluster_monitor_squeezed(void)
{
    return -1;
}

double __wrap_cluster_monitor_waited(void)
{
    return -1;
}

/* Of a worker that kills or stops itself at a named place (train/fault.h). */
int __wrap_raise(int number);
int __real_raise(int number);

int __wrap_raise(int number)
{
    if (base_world == NULL)
        return __real_raise(number);
    world.raised++;
    if (number == SIGKILL)
        sim_process_kill(sim_process_self());
    sim_process_stall(sim_process_self(), sim_spread(1e-3, 20));
    sim_yield();
    return 0;
}

int sim_raised(void)
{
    return world.raised;
}

/* Sixty-four workers whose buffers are zeroed would take gigabytes. */
base_status __wrap_base_tensor(size_t count, size_t size, const char *what, void *memory_pp);

base_status __wrap_base_tensor(size_t count, size_t size, const char *what, void *memory_pp)
{
    void *memory = NULL;
    size_t bytes = count * size + BASE_ALIGN;

    (void)what;
    if (posix_memalign(&memory, BASE_ALIGN, bytes) != 0)
        abort();
    if (bytes < SIM_MAPPED)
        memset(memory, 0, bytes);
    memcpy(memory_pp, &memory, sizeof memory);
    return BASE_OK;
}
