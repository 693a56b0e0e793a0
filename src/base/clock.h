/* SPDX-License-Identifier: MIT
 *
 * Clocks, in seconds.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

double base_now(void);         /* monotonic */
double base_wall(void);        /* since 1970 */
double base_process_cpu(void); /* CPU time of all threads of this process */

#endif
