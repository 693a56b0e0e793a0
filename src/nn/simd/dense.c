/* SPDX-License-Identifier: MIT
 *
 * Dense layers as matrix products over panels of eight outputs: w is [O8][K][8]. One micro-kernel
 * serves all three passes: a tile of rows x panels of accumulators, contracted over `depth`, with
 * strides saying what rows, panels and depth are. Blocks keep one panel pair and its rows in L1.
 * Every output element is the work of one thread and its sum has a fixed order, so the number of
 * threads does not change a bit.
 */
#include <string.h>

#include "nn/simd/simd_private.h"

/* ROWS * PANELS accumulators, PANELS weights and a broadcast value must fit the registers: 16 of 8
 * floats with AVX, 32 of 4 on ARM, 16 of 4 elsewhere. */
#if defined(__AVX__) || defined(__aarch64__)
enum { ROWS = 6, PANELS = 2 };
#else
enum { ROWS = 6, PANELS = 1 };
#endif
enum {
    PAIR = 8 * PANELS, /* outputs of a tile */
    DEPTH = 256,       /* contracted in one go: DEPTH * PAIR floats are 16 KB, half of L1 */
    TALL = 4 * ROWS,   /* rows of a forward task */
    WIDE = 16 * ROWS,  /* inputs of a backward-weights task */
    SAMPLES = 64,      /* contracted in one go by backward-weights */
};

/* c(r,p) (+)= Σ_t a(r,t) * b(t,p): element a(r,t) is a[r*a_row + t*a_step], vector b(t,p) is
 * b[t*b_step + p*b_panel], vector c(r,p) is c[r*c_row + p*c_panel]. */
struct tile {
    const float *a, *b, *bias; /* bias: vector p is bias[8p], or NULL */
    float *c;
    size_t a_row, a_step, b_step, b_panel, c_row, c_panel;
    int depth;
    bool add; /* to c instead of overwriting it */
};

NN_INLINE void tile_of(const struct tile *t, int rows, int panels)
{
    const float *a = t->a, *b = t->b;
    const size_t a_row = t->a_row, a_step = t->a_step, b_step = t->b_step, b_panel = t->b_panel;
    nn_v8 sum[ROWS][PANELS];

#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int p = 0; p < panels; p++)
            sum[r][p] = (nn_v8){0};
    for (int i = 0; i < t->depth; i++, a += a_step, b += b_step) {
        nn_v8 w[PANELS];

#pragma GCC unroll 2
        for (int p = 0; p < panels; p++)
            w[p] = nn_load(b + (size_t)p * b_panel);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
            for (int p = 0; p < panels; p++)
                sum[r][p] += a[(size_t)r * a_row] * w[p];
    }
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

#define CASES(panels)             \
    switch (rows) {               \
    case 1:                       \
        tile_of(t, 1, panels);    \
        break;                    \
    case 2:                       \
        tile_of(t, 2, panels);    \
        break;                    \
    case 3:                       \
        tile_of(t, 3, panels);    \
        break;                    \
    case 4:                       \
        tile_of(t, 4, panels);    \
        break;                    \
    case 5:                       \
        tile_of(t, 5, panels);    \
        break;                    \
    default:                      \
        tile_of(t, ROWS, panels); \
        break;                    \
    }

static void tile_run(const struct tile *t, int rows, int panels)
{
    if (panels == 1)
        CASES(1)
    else
        CASES(PANELS)
}

/* The same for any number of rows. */
static void tile_rows(struct tile t, int rows, int panels)
{
    for (; rows > 0; rows -= ROWS) {
        tile_run(&t, rows < ROWS ? rows : ROWS, panels);
        t.a += ROWS * t.a_row;
        t.c += ROWS * t.c_row;
    }
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* y (n,O8*8) = x (n,K) * w [O8][K][8] + b (O8*8) */
void NN_LEVEL(dense_forward)(int n, int k, int o8, const float *x, const float *w, const float *b,
                             float *y)
{
    const size_t outputs = (size_t)o8 * 8, inputs = (size_t)k;

#pragma omp parallel for collapse(2) schedule(static)
    for (int o = 0; o < o8; o += PANELS)
        for (int row = 0; row < n; row += TALL)
            for (int at = 0; at < k; at += DEPTH)
                tile_rows((struct tile){.a = x + (size_t)row * inputs + (size_t)at,
                                        .b = w + ((size_t)o * inputs + (size_t)at) * 8,
                                        .bias = b ? b + (size_t)o * 8 : NULL,
                                        .c = y + (size_t)row * outputs + (size_t)o * 8,
                                        .a_row = inputs,
                                        .a_step = 1,
                                        .b_step = 8,
                                        .b_panel = inputs * 8,
                                        .c_row = outputs,
                                        .c_panel = 8,
                                        .depth = least(DEPTH, k - at),
                                        .add = at > 0},
                          least(TALL, n - row), least(PANELS, o8 - o));
}

#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)

/* to[j][i] = from[i][j], 8x8 */
NN_INLINE void transpose(const float *from, float *to)
{
    nn_v8 a[8], b[8];

#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        a[i] = nn_load(from + (size_t)i * 8);
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        b[i] = MIX(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        b[i + 1] = MIX(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4)
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            a[i + 2 * j] = MIX(b[i + j], b[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            a[i + 2 * j + 1] = MIX(b[i + j], b[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        nn_store(to + (size_t)i * 8, MIX(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11));
        nn_store(to + (size_t)(i + 4) * 8, MIX(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15));
    }
}

/* Panel of up to eight inputs `count` from w [8 inputs][8 outputs] blocks, K*8 floats apart: to
 * [outputs][8], zeros behind `count`. */
static void turn_panel(const float *w, size_t inputs, int count, int blocks, float *to)
{
    float part[64] = {0};

    for (int o = 0; o < blocks; o++) {
        const float *from = w + (size_t)o * inputs * 8;

        if (count < 8)
            from = memcpy(part, from, (size_t)count * 8 * sizeof *part);
        transpose(from, to + (size_t)o * 64);
    }
}

/* The tile's rows when the panels hold only `inputs` < 8 * panels columns of c. */
static void tile_narrow(struct tile t, int rows, int panels, int inputs)
{
    float part[ROWS * PAIR] = {0};
    float *to = t.c;
    const size_t to_row = t.c_row;

    t.c = part;
    t.c_row = PAIR;
    for (int row = 0; row < rows; row += ROWS) {
        const int count = least(ROWS, rows - row);

        for (int r = 0; r < count && t.add; r++)
            memcpy(part + r * PAIR, to + (size_t)(row + r) * to_row, (size_t)inputs * sizeof *part);
        tile_run(&t, count, panels);
        for (int r = 0; r < count; r++)
            memcpy(to + (size_t)(row + r) * to_row, part + r * PAIR, (size_t)inputs * sizeof *part);
        t.a += ROWS * t.a_row;
    }
}

/* dx (n,K) = dy (n,O8*8) * wᵀ: blocks of w are turned into panels of eight inputs, [O][8]. */
void NN_LEVEL(dense_backward_data)(int n, int k, int o8, const float *dy, const float *w, float *dx)
{
    const size_t outputs = (size_t)o8 * 8, inputs = (size_t)k;

#pragma omp parallel for schedule(static)
    for (int at = 0; at < k; at += PAIR) {
        _Alignas(64) float turned[DEPTH * PAIR];
        const int columns = least(PAIR, k - at), panels = (columns + 7) / 8;

        for (int o = 0; o < o8; o += DEPTH / 8) {
            const int blocks = least(DEPTH / 8, o8 - o);
            struct tile t = {.a = dy + (size_t)o * 8,
                             .b = turned,
                             .c = dx + at,
                             .a_row = outputs,
                             .a_step = 1,
                             .b_step = 8,
                             .b_panel = DEPTH * 8,
                             .c_row = inputs,
                             .c_panel = 8,
                             .depth = blocks * 8,
                             .add = o > 0};

            for (int p = 0; p < panels; p++)
                turn_panel(w + ((size_t)o * inputs + (size_t)(at + p * 8)) * 8, inputs,
                           least(8, columns - p * 8), blocks, turned + (size_t)p * DEPTH * 8);
            if (columns == 8 * panels)
                tile_rows(t, n, panels);
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
        for (int o = 0; o < o8; o += PANELS) {
            const int panels = least(PANELS, o8 - o);

            pack(depth, panels * 8, dy + (size_t)i * outputs + (size_t)o * 8, outputs, dys, PAIR);
            tile_rows((struct tile){.a = xs,
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
