/* SPDX-License-Identifier: MIT
 *
 * For tests: workers that kill or stop themselves at a named place of a named step, so that losses
 * can be seen at every phase without guessing the moment. PACELINE_FAULT is "ID[,ID…]:PHASE:STEP",
 * or "STEP+" for that step or the first after it that the worker makes, which not every worker does
 * under ps; with ":STOP" at its end for SIGSTOP in place of SIGKILL. Phases "rubbish-…" make a
 * worker send rubbish; under ps STEP is then the number of its push. And one that stalls:
 * PACELINE_STALL is "PROBABILITY:SECONDS", of every block of samples that any worker computes. And
 * a record of what workers of `ps` read: PACELINE_READS is the file to which server 0 adds a line
 * for every push, "RANK CLOCK READ ENTRY".
 */
#ifndef TRAIN_FAULT_H
#define TRAIN_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct train_fault { /* zeros: none */
    char phase[24];
    int64_t step; /* under way, from 1; of `checkpoint` and `evaluation`: the last one done */
    bool later;   /* or any after it */
    int signal;
    bool armed; /* this worker is the one */
    double stall_probability, stall_seconds;
    const char *reads; /* path of the record; NULL: none */
    uint32_t id;       /* of this worker: workers stall at different times */
};

base_status train_fault_find(uint32_t id, struct train_fault *fault_p);
/* The worker is at `phase` of `step`: raises the signal if that is what was asked for. */
void train_fault_at(const struct train_fault *fault, const char *phase, int64_t step);
/* The same for a phase at which the caller itself does something wrong. */
bool train_fault_hits(const struct train_fault *fault, const char *phase, int64_t step);
/* The same for the n-th of several, "phase-n". */
void train_fault_nth(const struct train_fault *fault, const char *phase, int n, int64_t step);

/* A block was computed, the n-th of this worker: sleeps if it is to stall. */
void train_fault_stall(const struct train_fault *fault, uint64_t n);

#endif
