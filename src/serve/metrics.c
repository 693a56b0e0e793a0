/* SPDX-License-Identifier: MIT */
#include "serve/metrics.h"

void serve_count_answer(struct serve_counters *c, double queued, double computed)
{
    double us = (queued + computed) * 1e6;
    int bucket = 0;

    while (bucket < SERVE_BUCKETS - 1 && us > (double)(10ull << bucket))
        bucket++;
    atomic_fetch_add(&c->requests, 1);
    atomic_fetch_add(&c->queue_us, (unsigned long long)(queued * 1e6));
    atomic_fetch_add(&c->inference_us, (unsigned long long)(computed * 1e6));
    atomic_fetch_add(&c->latency[bucket], 1);
}
