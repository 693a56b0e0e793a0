/* SPDX-License-Identifier: MIT
 *
 * Run folders: RUNS/NAME/ with run.json (what was asked, what came out), events.jsonl, report.txt
 * and checkpoints/. run.json is replaced atomically; its status tells a finished run from one
 * that was interrupted, failed, or lost.
 */
#ifndef TRAIN_RUN_H
#define TRAIN_RUN_H

#include "base/json.h"
#include "base/status.h"
#include "model/about.h"

/* Seconds: a rank 0 that was lost with its host may be at its end, or save what it has; its agent
 * gives it 30. A successor waits that long for the folder's lock. */
enum { TRAIN_TAKE_OVER = 40 };

struct train_run {
    char *name, *path, *checkpoints, *events;
    json_t *json; /* run.json */
    bool locked;
    int lock; /* the folder, open, while locked */
};

/* Could there be a new run of this name? An existing one is an error that tells how to resume it;
 * an empty folder is none. */
base_status train_run_check(const char *runs_dir, const char *name);
/* Its folder. name NULL: `stem`-N with the first free N. `ours`: a worker of this job, now lost,
 * may have made the folder of that name; it is taken over. */
base_status train_run_create(const char *runs_dir, const char *name, const char *stem, bool ours,
                             struct train_run *run_p);
/* An existing run by name below runs_dir, or by path. */
base_status train_run_open(const char *runs_dir, const char *name, struct train_run *run_p);
/* What run.json says about its model, data and settings; model_about_fini. */
/* Is the run at that path of this host the same, and not another one of its name? */
bool train_run_is_here(const struct train_run *run);
base_status train_run_about(const struct train_run *run, struct model_about *about_p);
/* A run that another process has the folder of: its path and run.json, as that one knows them. */
void train_run_follow(struct train_run *run_p, const char *path, json_t *json);
/* One process at a time trains a run; the lock ends with the process at the latest. It is waited
 * for `seconds` at most. */
base_status train_run_lock(struct train_run *run, double seconds);
/* Is the folder that was locked still the one at the run's path? */
bool train_run_is_there(const struct train_run *run);
void train_run_unlock(struct train_run *run);
void train_run_close(struct train_run *run); /* accepts zeros; writes nothing */

/* Sets "status" (and pid while running) and replaces run.json. */
base_status train_run_save(struct train_run *run, const char *status);
base_status train_run_write(const struct train_run *run, const char *file, const char *text);

/* The newest step that events.jsonl tells of, a new reference; NULL: none. *age_p: seconds since
 * the run wrote anything. */
json_t *train_run_newest_step(const struct train_run *run, double *age_p);

/* "done", "running", "lost", … as run.json says; lost: it says running, but no process has the
 * folder's lock. */
const char *train_run_status(const struct train_run *run);

#endif
