/* SPDX-License-Identifier: MIT
 *
 * Workers that do collectives as they are told, for benchmarks that take turns and for tests that
 * break things. Every worker connects to the Unix socket that the job names and obeys lines:
 *
 *   time private|shared BYTES COUNT   COUNT all-reduces between barriers, after one to warm up
 *   check KIND BYTES COUNT            COUNT operations whose results are checked; 0: until one
 * fails. KIND: one of coll_kind_names, "space" or "async" hold BYTES                        touches
 * so much more memory
 *
 * The end of the socket is the end of the job. It answers with JSON lines, which docs/HACKING.md
 * lists. After a failure it opens the next view that it is in and goes on, as a training does.
 */
#ifndef CLI_DRILL_H
#define CLI_DRILL_H

#include "cluster/worker.h"

/* Of the job: "socket", a path; "collective", what coll_open is forced to (may be absent);
 * "transport" (may be absent). */
extern const struct cluster_program cli_drill;

#endif
