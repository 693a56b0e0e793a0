/* SPDX-License-Identifier: MIT
 *
 * One run as a process of its own: this program with `train … --json`. Ctrl-C does not reach it:
 * the lab ends it politely, and so does the system if the lab itself is killed.
 */
#ifndef LAB_CHILD_H
#define LAB_CHILD_H

#include <sys/types.h>

#include "base/json.h"

struct lab_child {
    pid_t pid;    /* 0: none */
    int alive;    /* a pidfd: readable when it has ended */
    int out, err; /* files in memory that it writes to */
};

#define LAB_SELF "/proc/self/exe" /* this program */

/* `program`: LAB_SELF, a path, or a name that is looked for in PATH. `words`: all of them, the
 * program's name first. */
base_status lab_child_start(const char *program, char *const *words, struct lab_child *child_p);
/* Asks it to stop; it finishes its step. */
void lab_child_ask(const struct lab_child *child);
/* When it has ended. *result_p: the object it printed; NULL: none. The status is its failure: its
 * own sentence, or how it ended. What it said beside that is told. `name` is for messages. */
base_status lab_child_finish(struct lab_child *child, const char *name, json_t **result_p);
void lab_child_close(struct lab_child *child); /* kills one that is still there; accepts zeros */

#endif
