/* SPDX-License-Identifier: MIT
 *
 * Following runs: when a training saves, the new checkpoint replaces the weights that are served.
 * One thread sleeps until the kernel tells it that a folder changed (inotify).
 */
#ifndef SERVE_FOLLOW_H
#define SERVE_FOLLOW_H

#include "serve/serve_private.h"

/* Makes a follower that follows no run yet. */
base_status serve_follower_new(struct serve *serve, struct serve_follower **follower_p);
/* Call it before the start. The run's folder must exist; its checkpoints may come later. */
base_status serve_follower_add(struct serve_follower *follower, const char *name, const char *run);
base_status serve_follower_start(struct serve_follower *follower);
void serve_follower_free(struct serve_follower *follower); /* accepts NULL */

#endif
