/* SPDX-License-Identifier: MIT
 *
 * Suites under mpirun: this process is one of the workers, and every process runs the whole suite.
 */
#ifndef SUPPORT_LAUNCHED_H
#define SUPPORT_LAUNCHED_H

#include "comm/transport.h"
#include "support/crew.h"

/* The transport whose launcher started this process, or NULL. */
const struct comm_transport *launched_by(void);

/* Runs a body here, if the group is as large as asked for. */
void launched_run(int workers, crew_body *body, size_t board_bytes, void *argument);
void launched_view(struct comm_view *view_p); /* of the body that runs */

#endif
