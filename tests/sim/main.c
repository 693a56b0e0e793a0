/* SPDX-License-Identifier: MIT
 *
 * Runs histories by seed, two at a time. The first that breaks an invariant is run again with a
 * trace, whose end is printed with the command that replays it.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/registry.h"
#include "sim/history.h"

enum { MAX_JOBS = 16, TRACE_LINES = 60 };

static const char *const bug_names[] = {[SIM_SOUND] = "none",
                                        [SIM_LOST_ACK] = "lost-ack",
                                        [SIM_MISSED_FENCE] = "missed-fence",
                                        [SIM_DOUBLE_COUNT] = "double-count"};

static struct {
    uint64_t from, count;
    const struct sim_program *program; /* NULL: all, in turns */
    enum sim_bug bug;
    int workers, jobs;
    int burners;
    bool trace, twice, finds, all;
} options = {.from = 1, .count = 100, .jobs = 2};

static struct {
    uint64_t done, failed, switches, losses, workers, elections, ended_well, struck, digest;
    double seconds;
} sums;

static const char usage[] =
    "usage: sim [--seeds FROM:COUNT] [--program NAME] [--strategy TEXT] [--phase NAME]\n"
    "           [--workers N] [--bug NAME] [--jobs N] [--trace] [--twice] [--finds] [--all] "
    "[--burn N]\n"
    "Runs simulated histories; the first that breaks an invariant ends it, with exit code 1.\n"
    "  --phase   a worker of each ring dies there, or two neighbours do; fails where none comes so "
    "far\n"
    "  --trace   print every event (of one seed)\n"
    "  --twice   run each history twice and compare the digests of their events\n"
    "  --finds   succeed when a history fails: the bug that was put back is found\n"
    "  --all     go on after a failure\n"
    "  --burn    so many processes keep the machine busy meanwhile\n"
    "programs:";

static _Noreturn void fail_usage(void)
{
    fputs(usage, stderr);
    for (size_t i = 0; i < sim_program_count; i++)
        fprintf(stderr, " %s", sim_program_registry[i]->name);
    fputs("\nbugs:", stderr);
    for (size_t i = 1; i < sizeof bug_names / sizeof bug_names[0]; i++)
        fprintf(stderr, " %s", bug_names[i]);
    fputc('\n', stderr);
    exit(2);
}

static enum sim_bug find_bug(const char *name)
{
    for (size_t i = 0; i < sizeof bug_names / sizeof bug_names[0]; i++)
        if (strcmp(bug_names[i], name) == 0)
            return (enum sim_bug)i;
    fail_usage();
}

static void parse(int argc, char **argv)
{
    static const struct option table[] = {{"seeds", required_argument, 0, 's'},
                                          {"program", required_argument, 0, 'p'},
                                          {"strategy", required_argument, 0, 'S'},
                                          {"workers", required_argument, 0, 'w'},
                                          {"bug", required_argument, 0, 'b'},
                                          {"jobs", required_argument, 0, 'j'},
                                          {"trace", no_argument, 0, 't'},
                                          {"twice", no_argument, 0, '2'},
                                          {"finds", no_argument, 0, 'f'},
                                          {"all", no_argument, 0, 'a'},
                                          {"burn", required_argument, 0, 'B'},
                                          {"phase", required_argument, 0, 'P'},
                                          {0}};
    int c;

    while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
        switch (c) {
        case 's':
            if (sscanf(optarg, "%" SCNu64 ":%" SCNu64, &options.from, &options.count) < 1)
                fail_usage();
            if (strchr(optarg, ':') == NULL)
                options.count = 1;
            break;
        case 'p':
            options.program = base_registry_get(optarg, sim_program_registry, sim_program_count);
            if (options.program == NULL)
                fail_usage();
            break;
        case 'S':
            sim_wanted_strategy = optarg;
            break;
        case 'P':
            sim_wanted_phase = optarg;
            break;
        case 'w':
            options.workers = atoi(optarg);
            break;
        case 'b':
            options.bug = find_bug(optarg);
            break;
        case 'j':
            options.jobs = atoi(optarg);
            break;
        case 'B':
            options.burners = atoi(optarg);
            break;
        case 't':
            options.trace = true;
            break;
        case '2':
            options.twice = true;
            break;
        case 'f':
            options.finds = true;
            break;
        case 'a':
            options.all = true;
            break;
        default:
            fail_usage();
        }
    }
    if (optind < argc || options.jobs < 1 || options.jobs > MAX_JOBS)
        fail_usage();
}

static struct sim_setup setup_of(uint64_t seed)
{
    return (struct sim_setup){.seed = seed,
                              .program = options.program != NULL
                                             ? options.program
                                             : sim_program_registry[seed % sim_program_count],
                              .bug = options.bug,
                              .workers = options.workers};
}

static void wait_for(struct sim_child *child, struct sim_outcome *out)
{
    while (!sim_history_ended(child, out))
        usleep(200);
}

static void print_end(const char *path, int lines)
{
    char line[512];
    FILE *file = fopen(path, "r");
    int count = 0;

    if (file == NULL) {
        fprintf(stderr, "no trace\n");
        return;
    }
    while (fgets(line, sizeof line, file) != NULL)
        count++;
    rewind(file);
    while (fgets(line, sizeof line, file) != NULL)
        if (count-- <= lines)
            fputs(line, stdout);
    fclose(file);
}

/* The history again, with a trace. */
static void replay(struct sim_setup setup, int lines)
{
    char path[] = "/tmp/sim-trace-XXXXXX";
    int fd = mkstemp(path);
    struct sim_child child;
    struct sim_outcome out;
    char *words;

    setup.trace = path;
    sim_history_start(&setup, -1, &child);
    wait_for(&child, &out);
    words = sim_history_words(&child);
    print_end(path, lines);
    printf("%s\n", words);
    base_free(words);
    sim_history_close(&child);
    close(fd);
    unlink(path);
}

static void report(struct sim_child *child)
{
    const struct sim_setup *setup = &child->setup;
    char *words = sim_history_words(child);
    char workers[32] = "", bug[48] = "", strategy[96] = "", phase[48] = "";

    if (options.workers > 0)
        snprintf(workers, sizeof workers, " --workers %d", options.workers);
    if (sim_wanted_strategy != NULL)
        snprintf(strategy, sizeof strategy, " --strategy %s", sim_wanted_strategy);
    if (sim_wanted_phase != NULL)
        snprintf(phase, sizeof phase, " --phase %s", sim_wanted_phase);
    if (setup->bug != SIM_SOUND)
        snprintf(bug, sizeof bug, " --bug %s", bug_names[setup->bug]);
    printf("seed %" PRIu64 " of %s fails; the last events of its history:\n", setup->seed,
           setup->program->name);
    replay(*setup, TRACE_LINES);
    printf("the first time it said:\n%s\n", words);
    base_free(words);
    printf("replay: sim --program %s --seeds %" PRIu64 "%s%s%s%s --trace\n", setup->program->name,
           setup->seed, strategy, phase, workers, bug);
}

/* Another run of the same history must have the same events. */
static bool is_same_again(const struct sim_setup *setup, int cpu, const struct sim_outcome *first)
{
    struct sim_child child;
    struct sim_outcome again;

    sim_history_start(setup, cpu, &child);
    wait_for(&child, &again);
    sim_history_close(&child);
    if (again.digest == first->digest && again.switches == first->switches)
        return true;
    printf("seed %" PRIu64 " of %s is not the same again: %016" PRIx64 " and %016" PRIx64 "\n",
           setup->seed, setup->program->name, first->digest, again.digest);
    return false;
}

static bool take(struct sim_child *child, int cpu, const struct sim_outcome *out)
{
    bool good = out->complete;

    if (good && options.twice)
        good = is_same_again(&child->setup, cpu, out);
    else if (!good && !options.finds)
        report(child);
    else if (!good)
        printf("found by seed %" PRIu64 " of %s\n", child->setup.seed, child->setup.program->name);
    sums.done++;
    sums.failed += !good;
    sums.switches += out->switches;
    sums.losses += (uint64_t)out->losses;
    sums.workers += (uint64_t)out->workers;
    sums.elections += (uint64_t)out->elections;
    sums.struck += (uint64_t)out->struck;
    sums.ended_well += good && out->code == BASE_OK;
    sums.seconds += out->seconds;
    sums.digest += out->digest * (2 * child->setup.seed + 1);
    sim_history_close(child);
    return good;
}

static void run_all(void)
{
    struct sim_child children[MAX_JOBS] = {0};
    uint64_t next = options.from, last = options.from + options.count;
    double told = base_now();
    int under_way = 0;

    while (next < last || under_way > 0) {
        for (int i = 0; i < options.jobs; i++) {
            struct sim_outcome out;

            if (children[i].pid > 0 && sim_history_ended(&children[i], &out)) {
                under_way--;
                if (!take(&children[i], i, &out) && !options.all)
                    last = next;
            }
            if (children[i].pid == 0 && next < last) {
                struct sim_setup setup = setup_of(next++);

                sim_history_start(&setup, i, &children[i]);
                under_way++;
            }
        }
        if (base_now() - told > 10) {
            told = base_now();
            fprintf(stderr, "%" PRIu64 " of %" PRIu64 " histories\n", sums.done, options.count);
        }
        usleep(100);
    }
}

/* OpenMP's teams are no threads of the world; each must be of one thread. OpenMP reads its variable
 * when the process begins. */
static void compute_alone(char **argv)
{
    const char *threads = getenv("OMP_NUM_THREADS");

    if (threads != NULL && strcmp(threads, "1") == 0)
        return;
    setenv("OMP_NUM_THREADS", "1", 1);
    execv("/proc/self/exe", argv);
}

/* Ends with this process. */
static void burn(void)
{
    volatile uint64_t turns = 0;

    if (fork() > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true)
        turns++;
}

int main(int argc, char **argv)
{
    double began = base_now();

    compute_alone(argv);
    parse(argc, argv);
    for (int i = 0; i < options.burners; i++)
        burn();
    if (options.trace) {
        replay(setup_of(options.from), 1 << 30);
        return 0;
    }
    run_all();
    printf("%" PRIu64 " histories in %.1f s, %" PRIu64 " failed; %" PRIu64 " workers, %" PRIu64
           " of them lost, %" PRIu64 " at a named phase; %" PRIu64 " elections; %" PRIu64
           " jobs ended well; %.0f virtual seconds, %" PRIu64 " turns; digest %016" PRIx64 "\n",
           sums.done, base_now() - began, sums.failed, sums.workers, sums.losses, sums.struck,
           sums.elections, sums.ended_well, sums.seconds, sums.switches, sums.digest);
    if (sim_wanted_phase != NULL && sums.struck == 0) {
        printf("no worker came to phase %s\n", sim_wanted_phase);
        return 1;
    }
    return options.finds ? sums.failed == 0 : sums.failed > 0;
}
