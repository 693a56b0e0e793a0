/* SPDX-License-Identifier: MIT
 *
 * Counters, and their Prometheus text. Any thread adds; reading needs no lock.
 */
#ifndef SERVE_METRICS_H
#define SERVE_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/str.h"

enum {
    SERVE_BUCKETS = 22
}; /* bucket i counts latencies up to 2^i * 10 microseconds; the last one all */

/* The counters of one version of a model. */
struct serve_counters {
    atomic_ullong requests, batches, samples, refused;
    atomic_ullong queue_us, inference_us; /* sums */
    atomic_ullong latency[SERVE_BUCKETS]; /* from a request's last byte to its answer */
};

/* Counts an answered request: seconds in the queue, and seconds that its batch was computed. */
void serve_count_answer(struct serve_counters *counters, double queued, double computed);

#endif
