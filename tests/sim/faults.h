/* SPDX-License-Identifier: MIT
 *
 * What befalls a job: deaths, stalls and cuts, drawn from the history's randomness.
 */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "sim/hosts.h"

/* Draws what will happen and starts the thread that lets it. Before sim_job_run. */
void sim_faults_begin(const struct sim_job *job);

/* Has something happened that may rightly end the job: no worker is left on a host that was not
 * hit; half of the hosts were hit, or half of those of a view; or host 0 was, before the first view
 * or otherwise than by its agent's death, which the other hosts get over. */
bool sim_faults_excuse(void);
bool sim_faults_hit(int host); /* the host itself, its agent or its links */
/* A person has asked to stop: the job may end before its work is done, or, at the very beginning,
 * without a result. */
bool sim_faults_stopped(void);

#endif
