/* SPDX-License-Identifier: MIT
 *
 * The kernels of one CPU level as a table: `recsys_kernels_portable`, `recsys_kernels_avx2`, …
 */
#include "recsys/kernels/kernels_private.h"

#define TABLE_(level) recsys_kernels_##level
#define TABLE(level) TABLE_(level)

extern const struct recsys_kernels TABLE(RECSYS_SIMD_LEVEL);
const struct recsys_kernels TABLE(RECSYS_SIMD_LEVEL) = {
    .dot = RECSYS_LEVEL(dot),
    .syrk = RECSYS_LEVEL(syrk),
    .pack = RECSYS_LEVEL(pack),
    .project = RECSYS_LEVEL(project),
    .quadratic = RECSYS_LEVEL(quadratic),
    .lanes_gather = RECSYS_LEVEL(lanes_gather),
    .lanes_cholesky = RECSYS_LEVEL(lanes_cholesky),
    .lanes_solve = RECSYS_LEVEL(lanes_solve),
    .normals = RECSYS_LEVEL(normals),
    .weigh = RECSYS_LEVEL(weigh),
    .gather = RECSYS_LEVEL(gather),
    .site = RECSYS_LEVEL(site),
    .sgd = RECSYS_LEVEL(sgd),
};
