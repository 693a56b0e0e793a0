/* SPDX-License-Identifier: MIT
 *
 * The micro-kernel of gemm.h: the accumulators of a tile stay in registers while it runs over
 * what is contracted, unrolled by four. Twelve independent chains hide the latency of a
 * multiply-add. Runs on one thread; the sum of an element has a fixed order.
 */
#include "nn/simd/gemm.h"

NN_INLINE void contract(const struct nn_tile *t, int rows, int panels, const float *a,
                        const float *b, nn_v8 sum[NN_ROWS][NN_PANELS])
{
    const size_t a_row = t->a_row, a_step = t->a_step, b_step = t->b_step, b_panel = t->b_panel;

#pragma GCC unroll 4
    for (int i = 0; i < t->depth; i++, a += a_step, b += b_step) {
        nn_v8 w[NN_PANELS];

#pragma GCC unroll 2
        for (int p = 0; p < panels; p++)
            w[p] = nn_load(b + (size_t)p * b_panel);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
            for (int p = 0; p < panels; p++)
                sum[r][p] += a[(size_t)r * a_row] * w[p];
    }
}

NN_INLINE void tile_of(const struct nn_tile *t, int rows, int panels)
{
    nn_v8 sum[NN_ROWS][NN_PANELS];
    const float *a = t->a, *b = t->b;
    int block = 0;

#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int p = 0; p < panels; p++)
            sum[r][p] = (nn_v8){0};
    do {
        contract(t, rows, panels, a, b, sum);
        a += t->a_block;
        b += t->b_block;
    } while (++block < t->blocks);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int p = 0; p < panels; p++) {
            float *c = t->c + (size_t)r * t->c_row + (size_t)p * t->c_panel;

            if (t->add)
                sum[r][p] += nn_load(c);
            else if (t->bias)
                sum[r][p] += nn_load(t->bias + (size_t)p * 8);
            nn_store(c, sum[r][p]);
        }
}

#define CASES(panels)                \
    switch (rows) {                  \
    case 1:                          \
        tile_of(t, 1, panels);       \
        break;                       \
    case 2:                          \
        tile_of(t, 2, panels);       \
        break;                       \
    case 3:                          \
        tile_of(t, 3, panels);       \
        break;                       \
    case 4:                          \
        tile_of(t, 4, panels);       \
        break;                       \
    case 5:                          \
        tile_of(t, 5, panels);       \
        break;                       \
    default:                         \
        tile_of(t, NN_ROWS, panels); \
        break;                       \
    }

static void tile_run(const struct nn_tile *t, int rows, int panels)
{
    if (panels == 1)
        CASES(1)
    else
        CASES(NN_PANELS)
}

void nn_gemm_rows(struct nn_tile t, int rows, int panels)
{
    /* Inlined: the strides stay in registers from tile to tile, 5 % at a depth of 64. */
    for (; rows >= NN_ROWS && panels == NN_PANELS; rows -= NN_ROWS) {
        tile_of(&t, NN_ROWS, NN_PANELS);
        t.a += NN_ROWS * t.a_row;
        t.c += NN_ROWS * t.c_row;
    }
    for (; rows > 0; rows -= NN_ROWS) {
        tile_run(&t, rows < NN_ROWS ? rows : NN_ROWS, panels);
        t.a += NN_ROWS * t.a_row;
        t.c += NN_ROWS * t.c_row;
    }
}

void nn_gemm(struct nn_tile t, int rows, int panels)
{
    const int depth = t.depth;

    for (int at = 0; at < depth; at += NN_DEPTH) {
        struct nn_tile slice = t;

        slice.depth = depth - at < NN_DEPTH ? depth - at : NN_DEPTH;
        slice.add = t.add || at > 0;
        for (int p = 0; p < panels; p += NN_PANELS) {
            nn_gemm_rows(slice, rows, panels - p < NN_PANELS ? panels - p : NN_PANELS);
            slice.b += NN_PANELS * t.b_panel;
            slice.c += NN_PANELS * t.c_panel;
            if (slice.bias)
                slice.bias += NN_PANELS * 8;
        }
        t.a += NN_DEPTH * t.a_step;
        t.b += NN_DEPTH * t.b_step;
    }
}
