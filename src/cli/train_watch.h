/* SPDX-License-Identifier: MIT
 *
 * `train --watch`: a process of its own that shows the run (`paceline watch`), from when the run
 * has a folder until the training ends. One at a time.
 */
#ifndef CLI_TRAIN_WATCH_H
#define CLI_TRAIN_WATCH_H

#include <stdbool.h>

/* A training goes on without its page: why there is none is a warning. */
void cli_train_watch_begin(const char *folder);
/* Its pages are told how the training ended. Does nothing where none has begun. */
void cli_train_watch_end(void);

#endif
