/* SPDX-License-Identifier: MIT
 *
 * One history: a seed and a program. It runs in a child of its own, in which the world takes over,
 * and tells its parent what came out.
 */
#ifndef SIM_HISTORY_H
#define SIM_HISTORY_H

#include <sys/types.h>

#include "sim/program.h"

struct sim_setup {
    uint64_t seed;
    const struct sim_program *program;
    enum sim_bug bug;
    int workers;       /* 0: drawn */
    const char *trace; /* a file; NULL: none */
};

struct sim_outcome {
    bool complete;   /* the history has come to its end and kept every invariant */
    uint64_t digest; /* of all its events */
    uint64_t switches;
    double seconds; /* virtual */
    int workers, losses, elections;
    int struck;     /* workers that killed or stopped themselves at a named phase */
    base_code code; /* that the job ended with */
};

struct sim_child {
    pid_t pid; /* 0: none */
    int result, errors;
    char folder[64];
    double began;
    struct sim_setup setup;
};

void sim_history_start(const struct sim_setup *setup, int cpu, struct sim_child *child_p);
/* Has it ended? Kills it when it has taken too long, in the machine's time. */
bool sim_history_ended(struct sim_child *child, struct sim_outcome *outcome_p);
/* What it said of its failure, and how it ended; base_free. */
char *sim_history_words(struct sim_child *child);
void sim_history_close(struct sim_child *child);

#endif
