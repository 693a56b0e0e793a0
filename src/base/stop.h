/* SPDX-License-Identifier: MIT
 *
 * Ctrl-C, SIGTERM and a closed terminal as a request: the loop finishes its step, saves and says
 * how to go on. A second signal ends the process at once. A closed pipe on standard error or output
 * is no reason to lose a training: writing to it fails, and the run goes on.
 */
#ifndef BASE_STOP_H
#define BASE_STOP_H

#include <signal.h>

/* From now on signals are requests. `words`: a line for the person who presses Ctrl-C, shown at
 * once, because the request may be heard of only later; NULL: none. */
void base_stop_install(const char *words);
#define BASE_STOP_STEP "finishing the step; Ctrl-C again quits at once"
int base_stop_signal(void);     /* 0, or the signal that asked */
void base_stop_ask(int signal); /* as if this signal had come, unless one has */
void base_stop_late(void);      /* the work is complete: what asks or has asked comes too late */

sigset_t base_stop_signals(void); /* those that are requests */
/* Blocks them for this thread and those it makes, so that they reach it alone, and only where it
 * waits for them with the mask of before. */
void base_stop_block(sigset_t *before_p);

#endif
