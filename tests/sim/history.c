/* SPDX-License-Identifier: MIT */
#include "sim/history.h"

#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "sim/faults.h"

/* Virtual seconds in which every job is over. */
static const double LIMIT = 400;
/* Seconds of CPU time that a history may take, and of the machine's time. */
enum { WATCHDOG = 60, PATIENCE = 600 };

/* ---- in the child ---- */

static void draw_network(const struct sim_setup *setup, int hosts)
{
    sim_network = (struct sim_network){.hosts = hosts,
                                       .latency = sim_spread(2e-5, 2e-2),
                                       .inside = sim_spread(1e-6, 1e-4),
                                       .bandwidth = sim_spread(1e7, 1e10),
                                       .jitter = sim_random(2) == 0 ? 0 : sim_unit(),
                                       .bug = setup->bug};
    if (sim_random(3) > 0)
        sim_network.window = (size_t)sim_spread(64, 4 << 20);
}

/* Few workers often, many now and then. */
static int draw_workers(void)
{
    uint32_t kind = sim_random(1000);

    if (kind < 840)
        return 2 + (int)sim_random(4);
    if (kind < 995)
        return 4 + (int)sim_random(9);
    return 8 + (int)sim_random(COMM_MAX_WORKERS - 7);
}

static void draw_job(const struct sim_setup *setup, struct sim_job *job)
{
    int workers = setup->workers > 0 ? setup->workers : draw_workers();
    int most = workers < SIM_MAX_HOSTS ? workers : SIM_MAX_HOSTS;

    job->program = setup->program->runs;
    job->change = setup->program->change;
    job->hosts = sim_random(4) == 0 ? 1 : 1 + (int)sim_random((uint32_t)most);
    for (int i = 0; i < job->hosts; i++)
        job->workers[i] = 1;
    for (int i = job->hosts; i < workers; i++)
        job->workers[sim_random((uint32_t)job->hosts)]++;
    job->restarts = sim_random(3) == 0;
    if (job->hosts > 1 && sim_random(4) == 0)
        job->guests = 1 + (int)sim_random((uint32_t)job->hosts - 1);
    job->joins_after = sim_spread(1e-3, 1);
    job->silence = sim_spread(2, 6);
    job->job = setup->program->plan(workers);
}

/* BASE_ERR_DATA: none is left of those that knew the state, and the job goes on with --resume.
 * Where the job's end has an excuse, those that knew it may have given up as a minority. */
static bool is_right(base_status st, bool known)
{
    return st == BASE_OK || st == BASE_ERR_PEER_LOST || st == BASE_ERR_INTERRUPTED ||
           (st == BASE_ERR_DATA && !known);
}

static void check_job(const struct sim_end *end)
{
    int count;
    const struct sim_worker *w = sim_workers(&count);
    bool known = false;

    for (int i = 0; i < count; i++)
        known |= w[i].knows && sim_process_is_alive(w[i].process) && !sim_faults_hit(w[i].host);
    for (int i = 0; i < count; i++) {
        if (!sim_process_is_alive(w[i].process))
            continue;
        sim_check(w[i].ended, "worker %u has not ended", w[i].id);
        sim_check(is_right(w[i].st, known && !sim_faults_excuse()), "worker %u ended with %s: %s",
                  w[i].id, base_code_name(w[i].st), w[i].words);
    }
    if (!sim_faults_excuse() && !sim_faults_stopped() && (known || end->code != BASE_ERR_DATA))
        sim_check(end->over && end->code == BASE_OK, "the job ended with %s without a reason: %s",
                  end->over ? base_code_name(end->code) : "nothing", end->text);
}

static void live(const struct sim_setup *setup, const char *folder, struct sim_outcome *out)
{
    struct sim_job job = {0};
    struct sim_end end;
    FILE *trace = setup->trace != NULL ? fopen(setup->trace, "we") : NULL;
    int count;
    const struct sim_worker *w;

    if (chdir(folder) != 0)
        abort();
    sim_begin(setup->seed, LIMIT, trace);
    draw_job(setup, &job);
    draw_network(setup, job.hosts);
    sim_faults_begin(&job);
    sim_trace("%d hosts, latency %g s, bandwidth %g B/s, window %zu, %s", job.hosts,
              sim_network.latency, sim_network.bandwidth, sim_network.window,
              job.restarts ? "the dead are replaced" : "the dead stay dead");
    sim_job_run(&job, &end);
    check_job(&end);
    setup->program->check(&job, &end);
    w = sim_workers(&count);
    *out = (struct sim_outcome){.complete = true,
                                .digest = sim_digest(),
                                .switches = sim_switches(),
                                .seconds = base_now(),
                                .workers = count,
                                .elections = sim_elections(),
                                .struck = sim_raised(),
                                .code = end.over ? end.code : BASE_ERR_PEER_LOST};
    for (int i = 0; i < count; i++)
        out->losses += !sim_process_is_alive(w[i].process);
    if (trace != NULL)
        fclose(trace);
}

static void pin(int cpu)
{
    cpu_set_t all, one;
    int seen = 0;

    CPU_ZERO(&one);
    if (cpu < 0 || sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    cpu %= CPU_COUNT(&all);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all) && seen++ == cpu)
            CPU_SET(i, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* ---- in the parent ---- */

void sim_history_start(const struct sim_setup *setup, int cpu, struct sim_child *child)
{
    struct sim_outcome out = {0};

    *child = (struct sim_child){.setup = *setup, .began = base_now()};
    snprintf(child->folder, sizeof child->folder, "%s/paceline-sim-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    child->result = memfd_create("outcome", MFD_CLOEXEC);
    child->errors = memfd_create("errors", MFD_CLOEXEC | 0);
    if (mkdtemp(child->folder) == NULL || child->result < 0 || child->errors < 0) {
        perror("a history's files");
        exit(1);
    }
    child->pid = fork();
    if (child->pid > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* zeroing huge pages would take most of the time */
    mallopt(M_ARENA_MAX, 1);               /* memory that was given back is used again */
    mallopt(M_MMAP_THRESHOLD, SIM_MAPPED);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    setrlimit(RLIMIT_CPU, &(struct rlimit){WATCHDOG, WATCHDOG});
    pin(cpu);
    dup2(child->errors, STDERR_FILENO);
    live(setup, child->folder, &out);
    if (pwrite(child->result, &out, sizeof out, 0) != (ssize_t)sizeof out)
        _exit(1);
    fflush(stderr);
    _exit(0);
}

bool sim_history_ended(struct sim_child *child, struct sim_outcome *out)
{
    int status;

    if (waitpid(child->pid, &status, WNOHANG) == 0) {
        if (base_now() - child->began < PATIENCE)
            return false;
        kill(child->pid, SIGKILL);
        waitpid(child->pid, &status, 0);
        dprintf(child->errors, "FAILED: it took more than %d s of the machine's time\n", PATIENCE);
    } else if (WIFSIGNALED(status)) {
        dprintf(child->errors, "FAILED: signal %d\n", WTERMSIG(status));
    }
    if (pread(child->result, out, sizeof *out, 0) != (ssize_t)sizeof *out)
        *out = (struct sim_outcome){0};
    return true;
}

char *sim_history_words(struct sim_child *child)
{
    off_t size = lseek(child->errors, 0, SEEK_END);
    char *text = base_calloc(1, (size_t)size + 1);

    if (pread(child->errors, text, (size_t)size, 0) != size)
        text[0] = '\0';
    return text;
}

void sim_history_close(struct sim_child *child)
{
    base_ignore(base_remove_tree(child->folder));
    close(child->result);
    close(child->errors);
    *child = (struct sim_child){0};
}
