/* SPDX-License-Identifier: MIT
 *
 * Ctrl-C, SIGTERM and a closed terminal as a request: the loop finishes its step, saves and says
 * how to go on. A second signal ends the process at once. A closed pipe on standard error or output
 * is no reason to lose a training: writing to it fails, and the run goes on.
 */
#ifndef BASE_STOP_H
#define BASE_STOP_H

void base_stop_install(void);   /* from now on signals are requests */
int base_stop_signal(void);     /* 0, or the signal that asked */
void base_stop_ask(int signal); /* as if this signal had come, unless one has */
void base_stop_late(void);      /* the work is complete: what asks or has asked comes too late */

#endif
