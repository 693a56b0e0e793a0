/* SPDX-License-Identifier: MIT
 *
 * What a history runs: `const struct sim_program sim_program_NAME` in a file of tests/sim/programs.
 */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include "sim/hosts.h"

struct sim_program {
    const char *name, *help;
    const struct cluster_program *runs; /* what the workers do */
    json_t *(*plan)(int workers);       /* the job, drawn from the history's randomness */
    sim_change *change;                 /* NULL: nothing can change while the job runs */
    /* After the job's end: sim_check what must hold. */
    void (*check)(const struct sim_job *job, const struct sim_end *end);
};

extern const struct sim_program *const sim_program_registry[];
extern const size_t sim_program_count;

/* The strategy of every training: "NAME", with one of its examples, or "NAME:options". NULL: it is
 * drawn. */
extern const char *sim_wanted_strategy;
/* The phase (train/fault.h) at which a worker of every ring dies, or two neighbours. NULL: it is
 * drawn, or none. */
extern const char *sim_wanted_phase;

#endif
