/* SPDX-License-Identifier: MIT
 *
 * Messages of this rank with every other rank of a group on some channels, both ways, all begun at
 * once and the sends first; their bytes tell sender, receiver, channel and length. Runs in a child
 * of a crew (support/crew.h).
 */
#ifndef SUPPORT_EXCHANGE_H
#define SUPPORT_EXCHANGE_H

#include "comm/group.h"

enum { EXCHANGE_SIZES = 16, EXCHANGE_MOST = 8 << 20 };
extern const size_t exchange_sizes[EXCHANGE_SIZES]; /* from none to the most, ascending */

struct exchange {
    struct comm_group *group;
    int first, channels; /* channels first … first + channels - 1 */
    size_t count;
    uint8_t *out[COMM_MAX_WORKERS][COMM_CHANNELS], *in[COMM_MAX_WORKERS][COMM_CHANNELS];
    struct comm_request requests[2 * COMM_MAX_WORKERS * COMM_CHANNELS];
    struct comm_request *all[2 * COMM_MAX_WORKERS * COMM_CHANNELS];
    int begun;
};

void exchange_begin(struct exchange *x);
/* Frees the buffers; the received ones must be right if the exchange ended well. */
void exchange_end(struct exchange *x, bool well);

base_status exchange_run(struct comm_group *group, int first, int channels, size_t count,
                         double deadline);

#endif
