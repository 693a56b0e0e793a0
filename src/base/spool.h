/* SPDX-License-Identifier: MIT
 *
 * A file that a thread of its own writes: the producer copies bytes into a ring, so that a training
 * step makes no system call and never waits for a disk. When the ring is full they are refused. One
 * producer thread.
 */
#ifndef BASE_SPOOL_H
#define BASE_SPOOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct base_spool;

base_status base_spool_open(const char *path, struct base_spool **spool_p); /* appends */
/* All of them or, where there is no room, none: false. */
bool base_spool_put(struct base_spool *spool, const void *bytes, size_t count);
/* What was put in so far is in the file, or closing will tell why not. For the producer. */
void base_spool_flush(struct base_spool *spool);
base_status base_spool_close(struct base_spool *spool); /* flushes; accepts NULL */

#endif
