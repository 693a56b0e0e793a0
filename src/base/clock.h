/* SPDX-License-Identifier: MIT
 *
 * Clocks, in seconds.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

double base_now(void);         /* monotonic */
double base_thread_cpu(void);  /* CPU time of this thread; a system call */
double base_process_cpu(void); /* the same of all threads */

#endif
