/* SPDX-License-Identifier: MIT
 *
 * Clocks, in seconds.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <time.h>

/* In a simulated world (base/thread.h) all three are its clock. */
double base_now(void);                        /* monotonic */
double base_thread_cpu(void);                 /* CPU time of this thread; a system call */
double base_process_cpu(void);                /* the same of all threads */
struct timespec base_timespec(double moment); /* of base_now, for timed waits; finite */

#endif
