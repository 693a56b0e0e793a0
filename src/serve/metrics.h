/* SPDX-License-Identifier: MIT
 *
 * Counters, and their Prometheus text. Any thread adds; reading needs no lock.
 */
#ifndef SERVE_METRICS_H
#define SERVE_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/str.h"

enum { SERVE_BUCKETS = 22 }; /* of latencies: up to 2^i * 10 microseconds; the last: any */

/* Of a version of a model. */
struct serve_counters {
    atomic_ullong requests, batches, samples, refused;
    atomic_ullong queue_us, inference_us; /* sums */
    atomic_ullong latency[SERVE_BUCKETS]; /* from a request's last byte to its answer */
};

/* A request that was answered: seconds in the queue, and computing, of its batch. */
void serve_count_answer(struct serve_counters *counters, double queued, double computed);

#endif
