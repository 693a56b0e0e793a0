/* SPDX-License-Identifier: MIT
 *
 * Dense layers as matrix products over panels of eight outputs: w is [O8][K][8]. The
 * micro-kernel of gemm.h serves all three passes. Blocks keep one panel pair and its rows in L1.
 * Every output element is the work of one thread and its sum has a fixed order, so the number of
 * threads does not change a bit.
 */
#include <string.h>

#include "base/team.h"
#include "nn/simd/gemm.h"

enum {
    PAIR = 8 * NN_PANELS, /* outputs of a tile */
    TALL = 4 * NN_ROWS,   /* rows of a forward task */
    WIDE = 16 * NN_ROWS,  /* inputs of a backward-weights task */
    SAMPLES = 64,         /* contracted in one go by backward-weights */
};

static int least(int a, int b)
{
    return a < b ? a : b;
}

struct dense {
    int n, k, o8;
    const float *x, *w, *b;
    float *y;
};

static int blocks_of_rows(const struct dense *d)
{
    return (d->n + TALL - 1) / TALL;
}

/* TALL rows and NN_PANELS panels of y */
static void dense_task(const void *context, int unit, int thread)
{
    const struct dense *d = context;
    const size_t outputs = (size_t)d->o8 * 8, inputs = (size_t)d->k;
    const int o = unit / blocks_of_rows(d) * NN_PANELS, row = unit % blocks_of_rows(d) * TALL;

    (void)thread;
    for (int at = 0; at < d->k; at += NN_DEPTH)
        nn_gemm_rows((struct nn_tile){.a = d->x + (size_t)row * inputs + (size_t)at,
                                      .b = d->w + ((size_t)o * inputs + (size_t)at) * 8,
                                      .bias = d->b ? d->b + (size_t)o * 8 : NULL,
                                      .c = d->y + (size_t)row * outputs + (size_t)o * 8,
                                      .a_row = inputs,
                                      .a_step = 1,
                                      .b_step = 8,
                                      .b_panel = inputs * 8,
                                      .c_row = outputs,
                                      .c_panel = 8,
                                      .depth = least(NN_DEPTH, d->k - at),
                                      .add = at > 0},
                     least(TALL, d->n - row), least(NN_PANELS, d->o8 - o));
}

/* y (n,O8*8) = x (n,K) * w [O8][K][8] + b (O8*8) */
void NN_LEVEL(dense_forward)(struct base_team *team, int n, int k, int o8, const float *x,
                             const float *w, const float *b, float *y)
{
    const struct dense d = {n, k, o8, x, w, b, y};
    const int units = (o8 + NN_PANELS - 1) / NN_PANELS * blocks_of_rows(&d);

    if (team != NULL) {
        base_team_run(team, units, dense_task, &d);
        return;
    }
#pragma omp parallel for schedule(static)
    for (int unit = 0; unit < units; unit++)
        dense_task(&d, unit, 0);
}

/* Panel of up to eight inputs `count` from w [8 inputs][8 outputs] blocks, K*8 floats apart: to
 * [outputs][8], zeros after `count`. */
static void turn_panel(const float *w, size_t inputs, int count, int blocks, float *to)
{
    float part[64] = {0};

    for (int o = 0; o < blocks; o++) {
        const float *from = w + (size_t)o * inputs * 8;

        if (count < 8)
            from = memcpy(part, from, (size_t)count * 8 * sizeof *part);
        nn_transpose(from, to + (size_t)o * 64);
    }
}

/* The tile's rows when the panels hold only `inputs` < 8 * panels columns of c. */
static void tile_narrow(struct nn_tile t, int rows, int panels, int inputs)
{
    float part[NN_ROWS * PAIR] = {0};
    float *to = t.c;
    const size_t to_row = t.c_row;

    t.c = part;
    t.c_row = PAIR;
    for (int row = 0; row < rows; row += NN_ROWS) {
        const int count = least(NN_ROWS, rows - row);

        for (int r = 0; r < count && t.add; r++)
            memcpy(part + r * PAIR, to + (size_t)(row + r) * to_row, (size_t)inputs * sizeof *part);
        nn_gemm_rows(t, count, panels);
        for (int r = 0; r < count; r++)
            memcpy(to + (size_t)(row + r) * to_row, part + r * PAIR, (size_t)inputs * sizeof *part);
        t.a += NN_ROWS * t.a_row;
    }
}

/* dx (n,K) = dy (n,O8*8) * wᵀ: blocks of w are turned into panels of eight inputs, [O][8]. */
void NN_LEVEL(dense_backward_data)(int n, int k, int o8, const float *dy, const float *w, float *dx)
{
    const size_t outputs = (size_t)o8 * 8, inputs = (size_t)k;

#pragma omp parallel for schedule(static)
    for (int at = 0; at < k; at += PAIR) {
        _Alignas(64) float turned[NN_DEPTH * PAIR];
        const int columns = least(PAIR, k - at), panels = (columns + 7) / 8;

        for (int o = 0; o < o8; o += NN_DEPTH / 8) {
            const int blocks = least(NN_DEPTH / 8, o8 - o);
            struct nn_tile t = {.a = dy + (size_t)o * 8,
                                .b = turned,
                                .c = dx + at,
                                .a_row = outputs,
                                .a_step = 1,
                                .b_step = 8,
                                .b_panel = NN_DEPTH * 8,
                                .c_row = inputs,
                                .c_panel = 8,
                                .depth = blocks * 8,
                                .add = o > 0};

            for (int p = 0; p < panels; p++)
                turn_panel(w + ((size_t)o * inputs + (size_t)(at + p * 8)) * 8, inputs,
                           least(8, columns - p * 8), blocks, turned + (size_t)p * NN_DEPTH * 8);
            if (columns == 8 * panels)
                nn_gemm_rows(t, n, panels);
            else
                tile_narrow(t, n, panels, columns);
        }
    }
}

/* Copies `rows` rows of `columns` floats: power-of-two strides would fall into one cache set. */
static void pack(int rows, int columns, const float *from, size_t from_row, float *to,
                 size_t to_row)
{
    for (int r = 0; r < rows; r++)
        memcpy(to + (size_t)r * to_row, from + (size_t)r * from_row, (size_t)columns * sizeof *to);
}

/* dw [O8][K][8] = Σ_n x (n,K) ⊗ dy (n,O8*8): rows of the tile are inputs. */
static void weights_of(int n, int k, int o8, int at, const float *x, const float *dy, float *dw)
{
    _Alignas(64) float xs[SAMPLES * WIDE], dys[SAMPLES * PAIR];
    const size_t outputs = (size_t)o8 * 8, inputs = (size_t)k;
    const int wide = least(WIDE, k - at);

    for (int i = 0; i < n; i += SAMPLES) {
        const int depth = least(SAMPLES, n - i);

        pack(depth, wide, x + (size_t)i * inputs + (size_t)at, inputs, xs, WIDE);
        for (int o = 0; o < o8; o += NN_PANELS) {
            const int panels = least(NN_PANELS, o8 - o);

            pack(depth, panels * 8, dy + (size_t)i * outputs + (size_t)o * 8, outputs, dys, PAIR);
            nn_gemm_rows((struct nn_tile){.a = xs,
                                          .b = dys,
                                          .c = dw + ((size_t)o * inputs + (size_t)at) * 8,
                                          .a_row = 1,
                                          .a_step = WIDE,
                                          .b_step = PAIR,
                                          .b_panel = 8,
                                          .c_row = 8,
                                          .c_panel = inputs * 8,
                                          .depth = depth,
                                          .add = i > 0},
                         wide, panels);
        }
    }
}

void NN_LEVEL(dense_backward_weights)(int n, int k, int o8, const float *x, const float *dy,
                                      float *dw, float *db)
{
#pragma omp parallel for schedule(static)
    for (int at = 0; at < k; at += WIDE)
        weights_of(n, k, o8, at, x, dy, dw);
    for (int o = 0; o < o8 && db; o++) {
        nn_v8 sum = {0};

        for (int i = 0; i < n; i++)
            sum += nn_load(dy + ((size_t)i * (size_t)o8 + (size_t)o) * 8);
        nn_store(db + (size_t)o * 8, sum);
    }
}
