/* SPDX-License-Identifier: MIT
 *
 * The micro-kernel of gemm.h: the accumulators of a tile stay in registers while it runs over
 * what is contracted, unrolled by four. Twelve independent chains hide the latency of a
 * multiply-add (24 with AVX-512). Runs on one thread; the sum of an element has a fixed order.
 */
#include "nn/simd/gemm.h"

/* A register holds WIDE panels. */
#if defined(__AVX512F__)
enum { WIDE = 2 };

NN_INLINE nn_widest wide_load(const float *low, const float *high)
{
    return NN_MIX(nn_load(low), nn_load(high), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                  15);
}

NN_INLINE nn_v8 wide_part(nn_widest value, int part)
{
    return part == 0 ? NN_MIX(value, value, 0, 1, 2, 3, 4, 5, 6, 7)
                     : NN_MIX(value, value, 8, 9, 10, 11, 12, 13, 14, 15);
}
#else
enum { WIDE = 1 };

NN_INLINE nn_widest wide_load(const float *low, const float *high)
{
    (void)high;
    return nn_load(low);
}

NN_INLINE nn_v8 wide_part(nn_widest value, int part)
{
    (void)part;
    return value;
}
#endif

enum { WIDES = NN_PANELS / WIDE, SPAN = 3 /* rows that one pointer reaches */ };

/* Vectors of b at one contracted element: packed, or where each panel has them. */
NN_INLINE void load_b(const float *b, int wides, const size_t *panel, bool packed,
                      nn_widest w[WIDES])
{
#pragma GCC unroll 4
    for (int p = 0; p < wides; p++)
        if (packed)
            w[p] = *(const nn_widest_at *)(b + (size_t)p * WIDE * 8);
        else
            w[p] = wide_load(b + panel[p * WIDE], b + panel[p * WIDE + WIDE - 1]);
}

NN_INLINE void contract(const struct nn_tile *t, int rows, int wides, const size_t *panel,
                        bool packed, const float *a, const float *b, nn_widest sum[NN_ROWS][WIDES])
{
    const size_t a_row = t->a_row, a_step = t->a_step, b_step = t->b_step;
    const float *at[NN_ROWS / SPAN];

#pragma GCC unroll 4
    for (int i = 0; i < NN_ROWS / SPAN; i++)
        at[i] = a + (size_t)(i * SPAN) * a_row;
#pragma GCC unroll 4
    for (int i = 0; i < t->depth; i++, b += b_step) {
        nn_widest w[WIDES];

        load_b(b, wides, panel, packed, w);
        if (packed) { /* into L2 */
            __builtin_prefetch(b + t->fetch[0], 0, 2);
            __builtin_prefetch(b + t->fetch[1], 0, 2);
        }
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int p = 0; p < wides; p++)
                sum[r][p] += at[r / SPAN][(size_t)(r % SPAN) * a_row] * w[p];
#pragma GCC unroll 4
        for (int r = 0; r < NN_ROWS / SPAN; r++)
            at[r] += a_step;
    }
}

/* The tile's first `panels` panels; those after them are computed from what is there, and dropped.
 */
NN_INLINE void tile_store(const struct nn_tile *t, int rows, int panels, int wides,
                          nn_widest sum[NN_ROWS][WIDES])
{
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int p = 0; p < wides * WIDE; p++) {
            float *c = t->c + (size_t)r * t->c_row + (size_t)p * t->c_panel;
            nn_v8 value = wide_part(sum[r][p / WIDE], p % WIDE);

            if (p >= panels)
                continue;
            if (t->add)
                value += nn_load(c);
            else if (t->bias)
                value += nn_load(t->bias + (size_t)p * 8);
            nn_store(c, value);
        }
}

NN_INLINE void tile_of(const struct nn_tile *t, int rows, int panels, int wides, bool packed)
{
    nn_widest sum[NN_ROWS][WIDES];
    size_t panel[NN_PANELS];
    const float *a = t->a, *b = t->b;
    int block = 0;

#pragma GCC unroll 4
    for (int p = 0; p < NN_PANELS; p++)
        panel[p] = (size_t)(p < panels ? p : panels - 1) * t->b_panel;
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int p = 0; p < wides; p++)
            sum[r][p] = (nn_widest){0};
    do {
        contract(t, rows, wides, panel, packed, a, b, sum);
        a += t->a_block;
        b += t->b_block;
    } while (++block < t->blocks);
    tile_store(t, rows, panels, wides, sum);
}

NN_INLINE void tile_run(const struct nn_tile *t, int rows, int panels, int wides, bool packed)
{
#define CASE(number)                                 \
    case number:                                     \
        tile_of(t, (number), panels, wides, packed); \
        break;
    switch (rows) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
#if defined(__AVX512F__)
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
#endif
    }
#undef CASE
}

/* Tiles of NN_ROWS rows; the last two share what is left, for each keeps the units busy. */
NN_INLINE int tile_rows(int rows)
{
    return rows <= NN_ROWS ? rows : rows < 2 * NN_ROWS ? (rows + 1) / 2 : NN_ROWS;
}

NN_INLINE void run_rows(struct nn_tile t, int rows, int panels, int wides, bool packed)
{
    /* Inlined: the strides stay in registers from tile to tile, 5 % at a depth of 64. */
    for (; rows >= 2 * NN_ROWS && panels == NN_PANELS; rows -= NN_ROWS) {
        tile_of(&t, NN_ROWS, NN_PANELS, WIDES, packed);
        t.a += NN_ROWS * t.a_row;
        t.c += NN_ROWS * t.c_row;
    }
    while (rows > 0) {
        const int count = tile_rows(rows);

        tile_run(&t, count, panels, wides, packed);
        t.a += (size_t)count * t.a_row;
        t.c += (size_t)count * t.c_row;
        rows -= count;
    }
}

static void run_packed(struct nn_tile t, int rows, int panels)
{
    run_rows(t, rows, panels, WIDES, true);
}

void nn_gemm_rows(struct nn_tile t, int rows, int panels)
{
    if (panels <= WIDE)
        run_rows(t, rows, panels, 1, false);
    else
        run_rows(t, rows, panels, WIDES, false);
}

/* The slice that follows this one comes from far: the first two tiles ask for its lines while they
 * compute, a single one for all of them. Tiles after these ask again, which costs nothing. */
void nn_gemm_packed(struct nn_tile t, int rows, int panels)
{
    const size_t next = (size_t)t.depth * t.b_step, line = NN_PANELS > 2 ? 16 : 0;

    if (rows <= NN_ROWS) {
        t.fetch[0] = next;
        t.fetch[1] = next + line;
    }
    for (int tile = 0; tile < 2 && rows > NN_ROWS; tile++) {
        const int count = tile_rows(rows);

        t.fetch[0] = tile == 0 ? next : next + line;
        run_packed(t, count, panels);
        t.a += (size_t)count * t.a_row;
        t.c += (size_t)count * t.c_row;
        t.fetch[0] = next + line;
        rows -= count;
    }
    run_packed(t, rows, panels);
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
