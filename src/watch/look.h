/* SPDX-License-Identifier: MIT
 *
 * A run as its folder shows it: run.json, what its events tell (report/story.h), what its workers
 * log. Looking again reads what is new, in memory that does not grow. It changes nothing there, and
 * the run need not be under way. One thread at a time.
 */
#ifndef WATCH_LOOK_H
#define WATCH_LOOK_H

#include <sys/stat.h>

#include "report/story.h"
#include "train/run.h"
#include "watch/log.h"

struct watch_look {
    struct train_run run;
    struct report_story story;
    struct watch_log log;
    uint64_t version;  /* changes with anything of it */
    struct stat saved; /* run.json when it was read */
    char status[16];
    double lost_since; /* base_now() when the status became `lost` */
    bool ended;
};

/* Also looks for the first time. A run that is not there is an error. */
base_status watch_look_open(const char *runs_dir, const char *name, struct watch_look *look_p);
void watch_look_again(struct watch_look *look);
/* The run is not under way. `lost` counts as the end once it has lasted for TRAIN_TAKE_OVER
 * seconds: until then a worker may take over from rank 0. */
bool watch_look_ended(const struct watch_look *look);
void watch_look_close(struct watch_look *look); /* accepts zeros */

/* One object, docs/json.md. */
json_t *watch_look_json(const struct watch_look *look);

#endif
