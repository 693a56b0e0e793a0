/* SPDX-License-Identifier: MIT
 *
 * Collectives of the MPI library itself, for groups whose transport is mpi. Every call is made by
 * all ranks, polls until the deadline, and ends as comm/group.h says. Counts are bytes, or floats.
 */
#ifndef COMM_TRANSPORTS_MPI_H
#define COMM_TRANSPORTS_MPI_H

#include "comm/group.h"

base_status comm_mpi_barrier(struct comm_group *group, double deadline);
base_status comm_mpi_broadcast(struct comm_group *group, int root, void *bytes, size_t count,
                               double deadline);
base_status comm_mpi_gather(struct comm_group *group, int root, const void *mine, size_t count,
                            void *all, double deadline);
base_status comm_mpi_scatter(struct comm_group *group, int root, const void *all, size_t count,
                             void *mine, double deadline);
/* In place: rank r's part is at all + r·count. */
base_status comm_mpi_all_gather(struct comm_group *group, void *all, size_t count, double deadline);
base_status comm_mpi_all_reduce(struct comm_group *group, float *x, size_t count, double deadline);

#endif
