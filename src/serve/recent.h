/* SPDX-License-Identifier: MIT
 *
 * The latest answers of a model: when, and after how long. Any thread adds and any reads, without a
 * lock: an answer is one word. Older answers are overwritten.
 */
#ifndef SERVE_RECENT_H
#define SERVE_RECENT_H

#include <stdatomic.h>

enum { SERVE_RECENT = 2048 };

struct serve_recent { /* empty if all zeros */
    atomic_ullong next;
    atomic_ullong answers[SERVE_RECENT]; /* milliseconds of the clock, and latency in 10 us */
};

struct serve_pace {
    int count;         /* the number of answers that the figures are from */
    double per_second; /* over the window, or over the time since the oldest one kept */
    double p50, p99;   /* seconds; 0 without answers */
};

/* `now` is base_now; latency in seconds. */
void serve_recent_add(struct serve_recent *recent, double now, double latency);
/* The figures of the answers in the last `window` seconds. */
struct serve_pace serve_recent_pace(const struct serve_recent *recent, double now, double window);

#endif
