/* SPDX-License-Identifier: MIT
 *
 * The arithmetic of collectives: sums of several sources in one pass, and bfloat16 for the wire.
 * Every level gives the same bits: products are rounded before they are added, in the order of the
 * sources, and nothing is contracted. No alignment is asked for. Thread-safe.
 */
#ifndef COLL_KERNELS_H
#define COLL_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu_level.h"

struct coll_kernels {
    /* y[0 … outs)[i] = ((scale[0]·x[0][i] + scale[1]·x[1][i]) + …), i < count; scale NULL: ones.
     * y may be among x. stream: past the caches, for results that no rank reads soon; complete for
     * other threads when it returns. */
    void (*sum)(size_t count, int sources, const float *const *x, const float *scale, int outs,
                float *const *y, bool stream);
    /* To the nearest, ties to even; NaN stays NaN. y may be the memory of x. */
    void (*pack)(size_t count, const float *x, uint16_t *y);
    void (*unpack)(size_t count, const uint16_t *x, float *y);
};

const struct coll_kernels *coll_kernels(void); /* of this process's level */
const struct coll_kernels *coll_kernels_of(enum base_cpu_level level);

/* x *= scale, y += x, …: the common cases of `sum`. */
void coll_scale(size_t count, float scale, float *x);
void coll_add(size_t count, const float *more, float scale, float *x); /* x = more + scale·x */

void coll_round(size_t count, float *x); /* to what bf16 keeps */

#endif
