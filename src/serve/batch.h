/* SPDX-License-Identifier: MIT
 *
 * What a worker does with a batch of jobs.
 */
#ifndef SERVE_BATCH_H
#define SERVE_BATCH_H

#include "serve/version.h"

/* Reads the jobs' inputs, computes them together, answers and frees every one. */
void serve_batch_run(struct serve_version *version, struct serve_worker *worker,
                     struct serve_job *batch);

#endif
