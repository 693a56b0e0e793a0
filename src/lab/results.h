/* SPDX-License-Identifier: MIT
 *
 * What a lab has done, in FOLDER/results.json: a record for each finished run, under an id made of
 * its command line. A run that was asked for again is found by it, whatever else of the lab has
 * changed. The file is replaced atomically with every run.
 */
#ifndef LAB_RESULTS_H
#define LAB_RESULTS_H

#include "lab/lab.h"

enum { LAB_ID = 17 }; /* with the terminating zero */

struct lab_results {
    char *folder, *path;
    json_t *json, *runs; /* the file; id → record in it */
    int lock;            /* the folder, open while it is locked; -1 */
};

/* The folder is made if it is not there. `fresh`: what it has is forgotten. `reads`: no run will
 * be added, and another process may be at work. */
base_status lab_results_open(const char *folder, const char *lab, bool fresh, bool reads,
                             struct lab_results *results_p);
void lab_results_close(struct lab_results *results); /* accepts zeros */

void lab_run_id(const struct lab_point *point, int64_t seed, char id[LAB_ID]);

/* The record of a finished run: point, seed, options, result (train --json), epochs (of run.json),
 * wall_seconds. NULL: it is not done. */
const json_t *lab_results_get(const struct lab_results *results, const struct lab_point *point,
                              int64_t seed);
/* Takes the record over and saves. */
base_status lab_results_add(struct lab_results *results, const struct lab_point *point,
                            int64_t seed, json_t *record);

#endif
