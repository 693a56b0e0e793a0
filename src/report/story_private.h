/* SPDX-License-Identifier: MIT
 *
 * Shared inside report/ only: the parts of reading a story.
 */
#ifndef REPORT_STORY_PRIVATE_H
#define REPORT_STORY_PRIVATE_H

#include "report/story.h"

/* story_cluster.c: one event of cluster.jsonl. `unused` makes it like its counterpart. */
void report_story_cluster_event(struct report_story *story, const struct base_event_line *line,
                                size_t *unused);

#endif
