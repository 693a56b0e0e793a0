/* SPDX-License-Identifier: MIT */
#include "serve/recent.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

enum { LATENCY_BITS = 24 };
static const double LATENCY_UNIT = 1e-5;
static const unsigned long long LATENCY_MASK = (1ull << LATENCY_BITS) - 1;

/* The value of an answer is never zero, so zero means an empty place. */
void serve_recent_add(struct serve_recent *recent, double now, double latency)
{
    double units = fmin(fmax(round(latency / LATENCY_UNIT), 1), (double)LATENCY_MASK);
    unsigned long long at = atomic_fetch_add(&recent->next, 1) % SERVE_RECENT;

    atomic_store(&recent->answers[at],
                 (unsigned long long)(now * 1e3) << LATENCY_BITS | (unsigned long long)units);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The smallest of the sorted values that at least `share` of them do not exceed. */
static double percentile(const double *sorted, int count, double share)
{
    return count > 0 ? sorted[(int)ceil(share * count) - 1] : 0;
}

struct serve_pace serve_recent_pace(const struct serve_recent *recent, double now, double window)
{
    double *latencies = base_calloc(SERVE_RECENT, sizeof *latencies), oldest = now;
    struct serve_pace pace = {0};

    for (int i = 0; i < SERVE_RECENT; i++) {
        unsigned long long answer = atomic_load(&recent->answers[i]);
        double when = (double)(answer >> LATENCY_BITS) * 1e-3;

        if (answer == 0 || when < now - window)
            continue;
        oldest = fmin(oldest, when);
        latencies[pace.count++] = (double)(answer & LATENCY_MASK) * LATENCY_UNIT;
    }
    if (pace.count == SERVE_RECENT) /* the window had more answers than are kept */
        window = fmax(now - oldest, 1e-3);
    qsort(latencies, (size_t)pace.count, sizeof *latencies, compare);
    pace.per_second = pace.count / window;
    pace.p50 = percentile(latencies, pace.count, 0.50);
    pace.p99 = percentile(latencies, pace.count, 0.99);
    base_free(latencies);
    return pace;
}
