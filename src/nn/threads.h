/* SPDX-License-Identifier: MIT
 *
 * The number of compute threads (OpenMP) of this process.
 */
#ifndef NN_THREADS_H
#define NN_THREADS_H

/* 0: one for each core this process may use (base/cpus.h). Returns the number now in force. */
int nn_threads_set(int threads);

/* The number in force. */
int nn_threads(void);

#endif
