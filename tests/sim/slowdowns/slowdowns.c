/* SPDX-License-Identifier: MIT
 *
 * Slowdowns that are injected into made-up trainings, and how soon and with which cause the
 * detector of the product finds them (train/anomaly.h). It is told what workers of a ring
 * all-reduce would tell each other after each step. Their times are not those that the detector
 * assumes: they scatter by 2 to 5 % with a memory from step to step, drift together, have pauses in
 * which other processes have the CPU, longer steps of all workers at the end of an epoch and of
 * rank 0 when it writes a checkpoint, and links that scatter more than computing does. Each seed is
 * a training.
 */
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "train/anomaly.h"

enum kind { QUOTA, LINK, STALLS, MEMORY, NEIGHBOUR, KINDS };

static const char *const kind_names[KINDS] = {"CPU quota", "link rate", "stalls", "memory pressure",
                                              "busy neighbour"};
static const enum train_cause kind_causes[KINDS] = {TRAIN_CAUSE_QUOTA, TRAIN_CAUSE_LINK,
                                                    TRAIN_CAUSE_STALLS, TRAIN_CAUSE_MEMORY,
                                                    TRAIN_CAUSE_STOLEN};

struct training {
    struct base_rng rng;
    uint32_t drawn;
    int size;
    int64_t step;
    double seconds;        /* of a usual step's computing */
    double scatter, drift; /* of each worker; of all at this time */
    double speed[COMM_MAX_WORKERS], noise[COMM_MAX_WORKERS];
    double link, link_scatter, link_noise[COMM_MAX_WORKERS]; /* seconds to the next worker */
    int epoch, checkpoint;                                   /* steps between them */
    enum kind kind;
    int slow;      /* the worker that is slow; -1: none */
    double factor; /* of a step's time */
    int every;     /* steps between two stalls in the mean */
    struct train_watch watch;
};

static double unit(struct training *t)
{
    return base_rng_unit(base_rng_u32(&t->rng, t->drawn++)) + 0x1p-25;
}

static double between(struct training *t, double least, double most)
{
    return least + (most - least) * unit(t);
}

static double normal(struct training *t)
{
    double u = unit(t);

    return sqrt(-2 * log(u)) * cos(2 * M_PI * unit(t));
}

static void follow(struct training *t, double *value, double memory, double deviation)
{
    *value = memory * *value + deviation * sqrt(1 - memory * memory) * normal(t);
}

static struct training *begin(uint32_t seed, uint32_t purpose)
{
    static const int sizes[] = {2, 3, 4, 4, 6, 8};
    struct training *t = calloc(1, sizeof *t);

    if (t == NULL)
        abort();
    t->rng = base_rng_of(seed, BASE_STREAM_TEST, purpose, 0, 0);
    t->size = sizes[(int)between(t, 0, 6)];
    t->seconds = between(t, 0.6, 1.6);
    t->scatter = between(t, 0.02, 0.05);
    t->link = t->seconds * between(t, 0.03, 0.4);
    t->link_scatter = between(t, 0.03, 0.15);
    t->epoch = (int)between(t, 40, 200);
    t->checkpoint = (int)between(t, 50, 300);
    t->slow = -1;
    for (int i = 0; i < t->size; i++)
        t->speed[i] = exp(between(t, -0.2, 0.2));
    train_watch_begin(&t->watch, t->size, 0);
    return t;
}

/* What the slow worker's step takes more, and where that goes. */
static void slow_down(struct training *t, struct train_effort *e, struct train_link *links)
{
    const double usual = t->seconds * t->speed[t->slow], added = (t->factor - 1) * usual;
    struct train_effort more = {0};
    double part;

    switch (t->kind) {
    case QUOTA:
        more.seconds = added * between(t, 0.9, 1.1);
        more.stolen = more.seconds * between(t, 0.9, 1);
        more.throttled = more.seconds * between(t, 0.8, 1.2);
        break;
    case LINK:
        part = added * between(t, 0.9, 1.1);
        links[t->slow * t->size + (t->slow + 1) % t->size].seconds += part;
        links[(t->slow + t->size - 1) % t->size * t->size + t->slow].seconds += part;
        break;
    case STALLS: /* one that falls into the communication is not seen */
        if (unit(t) < 1.0 / t->every && unit(t) < t->seconds / (t->seconds + t->link))
            more.seconds = more.still = added * t->every * between(t, 0.6, 1.4);
        break;
    case MEMORY:
        more.seconds = added * between(t, 0.3, 1.7);
        more.memory = more.seconds * between(t, 0.5, 1.2);
        more.still = more.seconds * between(t, 0.7, 1);
        break;
    case NEIGHBOUR:
    case KINDS:
        more.seconds = added * between(t, 0.5, 1.5);
        more.stolen = more.seconds * between(t, 0.6, 1);
    }
    train_effort_add(e, &more);
}

/* One more step; returns what was found. */
static int make_step(struct training *t, struct train_anomaly *found)
{
    struct train_effort efforts[COMM_MAX_WORKERS];
    struct train_link links[8 * 8] = {0};
    double all;

    t->step++;
    follow(t, &t->drift, 0.98, 0.1);
    all = exp(t->drift) * (t->step % t->epoch == 0 ? between(t, 1.2, 2) : 1);
    for (int i = 0; i < t->size; i++) {
        double seconds, paused = 0;

        follow(t, &t->noise[i], 0.3, t->scatter);
        follow(t, &t->link_noise[i], 0.5, t->link_scatter);
        seconds = t->seconds * t->speed[i] * all * exp(t->noise[i]);
        if (unit(t) < 0.01)
            paused = seconds * unit(t);
        if (i == 0 && t->step % t->checkpoint == 0)
            seconds *= between(t, 1.2, 1.6);
        efforts[i] = (struct train_effort){.samples = 64,
                                           .seconds = seconds + paused,
                                           .data = 0.02 * seconds * unit(t),
                                           .stolen = 0.02 * seconds * unit(t) + paused,
                                           .still = 0.02 * seconds * unit(t)};
        links[i * t->size + (i + 1) % t->size] =
            (struct train_link){t->link * exp(t->link_noise[i]), 1e7};
    }
    if (t->slow >= 0)
        slow_down(t, &efforts[t->slow], links);
    return train_watch_tell(&t->watch, efforts) ? train_watch_see(&t->watch, links, t->step, found)
                                                : 0;
}

struct figures {
    int injected, found, in_time, right;
};

/* A worker becomes `factor` times as slow. False: what was found was not there. */
static bool inject(uint32_t seed, enum kind kind, bool large, struct figures *f, bool prints)
{
    struct training *t = begin(seed, large);
    const int before = (int)between(t, 60, 200), limit = large ? 10 : 60;
    struct train_anomaly found[COMM_MAX_WORKERS * TRAIN_ASPECTS];
    int steps = 0, count = 0, at = 0;
    bool alarm = false;

    for (int i = 0; i < before; i++)
        alarm |= make_step(t, found) > 0;
    t->kind = kind;
    t->slow = (int)between(t, 0, t->size);
    t->factor = large ? between(t, 1.3, 2) : between(t, 1.15, 1.3);
    t->every = (int)between(t, 1, 5);
    for (; steps < 120 && count == 0; steps++)
        count = make_step(t, found);
    for (at = 0; at < count; at++)
        if (found[at].rank == t->slow || (kind == LINK && t->size == 2))
            break;
    f->injected++;
    if (at < count) {
        f->found++;
        f->in_time += steps <= limit;
        f->right += found[at].cause == kind_causes[kind];
    }
    if (prints)
        printf("seed %u, %s %.2f, %d workers, scatter %.1f %%, every %d: %s after %d steps, %s\n",
               seed, kind_names[kind], t->factor, t->size, 100 * t->scatter, t->every,
               at < count  ? "found"
               : count > 0 ? "another"
                           : "not found",
               steps, at < count ? train_cause_names[found[at].cause] : "");
    free(t);
    return !alarm;
}

/* An hour in which nothing happens. Returns alarms but those of stolen CPU, which are counted. */
static int clean_hour(uint32_t seed, bool prints, int *stolen_p)
{
    struct training *t = begin(seed, 2);
    struct train_anomaly found[COMM_MAX_WORKERS * TRAIN_ASPECTS];
    int alarms = 0;

    for (double seconds = 0; seconds < 3600; seconds += t->seconds + t->link) {
        int count = make_step(t, found);

        for (int i = 0; i < count && prints; i++)
            printf("seed %u, %d workers, scatter %.1f %%, step %" PRId64 ": worker %d, %s%s %.2f\n",
                   seed, t->size, 100 * t->scatter, t->step, found[i].rank,
                   found[i].over ? "over: " : "", train_aspect_names[found[i].aspect],
                   found[i].past);
        for (int i = 0; i < count; i++)
            if (!found[i].over && found[i].cause == TRAIN_CAUSE_STOLEN)
                ++*stolen_p;
            else if (!found[i].over)
                alarms++;
    }
    free(t);
    return alarms;
}

static double percent(int part, int all)
{
    return all > 0 ? 100.0 * part / all : 0;
}

/* Prints a table. True: the figures of all kinds together are good enough. */
static bool inject_all(uint32_t from, int count, bool prints)
{
    static const char *const sizes[] = {"15 to 30 %, 60 steps", "30 to 100 %, 10 steps"};
    struct figures all = {0};
    int early = 0;

    for (int large = 1; large >= 0; large--)
        for (int kind = 0; kind < KINDS; kind++) {
            struct figures f = {0};

            for (int i = 0; i < count; i++)
                early += !inject(from + (uint32_t)(kind * count + i), (enum kind)kind, large, &f,
                                 prints);
            printf("%-16s %-22s %5d injected, found %5.1f %%, in time %5.1f %%, cause right %5.1f "
                   "%%\n",
                   kind_names[kind], sizes[large], f.injected, percent(f.found, f.injected),
                   percent(f.in_time, f.injected), percent(f.right, f.found));
            all.injected += f.injected;
            all.found += f.found;
            all.in_time += f.in_time;
            all.right += f.right;
        }
    printf("all: in time %.1f %% (95), cause right %.1f %% (90); alarms before it %d of %d\n",
           percent(all.in_time, all.injected), percent(all.right, all.found), early, all.injected);
    return all.in_time >= 0.95 * all.injected && all.right >= 0.9 * all.found;
}

static const char usage[] =
    "usage: slowdowns [--seeds FROM:COUNT] [--hours H] [--most A] [--all]\n"
    "Injects slowdowns of every kind and two sizes, COUNT of each, then watches H hours without "
    "any\n"
    "(1). Fails where fewer than 95 %% are found in time, fewer than 90 %% with the right cause, "
    "or\n"
    "where there are more than A alarms (0) that no stolen CPU explains. --all prints every one.\n";

int main(int argc, char **argv)
{
    static const struct option table[] = {{"seeds", required_argument, 0, 's'},
                                          {"hours", required_argument, 0, 'h'},
                                          {"most", required_argument, 0, 'm'},
                                          {"all", no_argument, 0, 'a'},
                                          {0}};
    uint32_t from = 1;
    int count = 26, hours = 1, most = 0, alarms = 0, stolen = 0, c;
    bool prints = false, good;

    while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
        prints |= c == 'a';
        if ((c == 's' && sscanf(optarg, "%" SCNu32 ":%d", &from, &count) != 2) || c == '?') {
            fputs(usage, stderr);
            return 2;
        }
        hours = c == 'h' ? atoi(optarg) : hours;
        most = c == 'm' ? atoi(optarg) : most;
    }
    good = inject_all(from, count, prints);
    for (int i = 0; i < hours; i++)
        alarms += clean_hour(from + (uint32_t)i, prints, &stolen);
    printf("%d clean hours: %d alarms, %d more that stolen CPU explains\n", hours, alarms, stolen);
    return good && alarms <= most ? 0 : 1;
}
