/* SPDX-License-Identifier: MIT
 *
 * Convolutions of a planar input with few channels: the first layer. For a band of output rows,
 * the input under each tap is gathered as one long row, col [K][pixels] with k = (h,w,i) in the
 * order of the weights (Ohwi8o); the rest are matrix products. Threads own bands; gradients of
 * weights are summed over a fixed number of groups of images, then over groups, so results do not
 * depend on the number of threads.
 */
#include <string.h>

#include "nn/simd/conv.h"
#include "nn/simd/gemm.h"

enum {
    BAND = 256,  /* pixels of a band, or one row */
    GROUPS = 16, /* of images, in the gradient of the weights */
};

struct layout {
    const struct nn_conv_shape *s;
    int taps, o8, pixels; /* K, O/8, HO*WO */
    int rows, bands;      /* output rows of a band, bands of an image */
    size_t row;           /* floats between taps of col */
    size_t turned;        /* floats of w with taps as outputs, [K/8][O][8] */
    size_t partial;       /* floats of a group's sums, [O8][K+1][8] */
    size_t mine;          /* floats of a thread: col, or the gradient of it [pixels][K/8*8] */
};

static int least(int a, int b)
{
    return a < b ? a : b;
}

static struct layout layout_of(const struct nn_conv_shape *s)
{
    struct layout l = {.s = s,
                       .taps = s->kernel[0] * s->kernel[1] * s->in.c,
                       .o8 = nn_pad8(s->out.c) / 8,
                       .pixels = s->out.h * s->out.w};

    l.rows = s->out.w >= BAND ? 1 : least(BAND / s->out.w, s->out.h);
    l.bands = (s->out.h + l.rows - 1) / l.rows;
    l.row = (size_t)nn_pad8(l.rows * s->out.w) + 8;
    l.turned = (size_t)nn_pad8(l.taps) * (size_t)l.o8 * 8;
    l.partial = (size_t)(l.taps + 1) * (size_t)l.o8 * 8;
    l.mine = (size_t)nn_pad8(l.taps + 1) * l.row;
    return l;
}

static size_t scratch_bytes(const struct nn_conv_shape *shape, int threads)
{
    const struct layout l = layout_of(shape);
    const size_t shared = l.turned > GROUPS * l.partial ? l.turned : GROUPS * l.partial;

    return (shared + (size_t)threads * l.mine) * sizeof(float);
}

/* The row of x under tap column w; of the output row, first … end lie over the image. */
static void gather_row(const struct nn_conv_shape *s, const float *x, int w, float *to)
{
    const int stride = s->stride[1], start = w - s->pad[1];
    int first = start < 0 ? (-start + stride - 1) / stride : 0;
    int end = s->in.w > start ? (s->in.w - start + stride - 1) / stride : 0;

    end = least(end, s->out.w);
    first = least(first, end);
    memset(to, 0, (size_t)first * sizeof *to);
    if (stride == 1 && end > first)
        memcpy(to + first, x + start + first, (size_t)(end - first) * sizeof *to);
    for (int c = first; c < end && stride > 1; c++)
        to[c] = x[start + c * stride];
    memset(to + end, 0, (size_t)(s->out.w - end) * sizeof *to);
}

/* x [C][H][W] -> col [K][pixels of the band] */
static void gather(const struct layout *l, const float *x, int band, float *col)
{
    const struct nn_conv_shape *s = l->s;
    const int end = least((band + 1) * l->rows, s->out.h);

    for (int h = 0; h < s->kernel[0]; h++)
        for (int w = 0; w < s->kernel[1]; w++)
            for (int i = 0; i < s->in.c; i++, col += l->row) {
                float *to = col;

                for (int r = band * l->rows; r < end; r++, to += s->out.w) {
                    const int row = r * s->stride[0] - s->pad[0] + h;

                    if (row < 0 || row >= s->in.h)
                        memset(to, 0, (size_t)s->out.w * sizeof *to);
                    else
                        gather_row(s, x + (size_t)(i * s->in.h + row) * (size_t)s->in.w, w, to);
                }
            }
}

static int band_pixels(const struct layout *l, int band)
{
    return least(l->rows, l->s->out.h - band * l->rows) * l->s->out.w;
}

/* Offset of a band in y or dy. */
static size_t band_at(const struct layout *l, int image, int band)
{
    return ((size_t)image * (size_t)l->o8 * (size_t)l->pixels +
            (size_t)(band * l->rows) * (size_t)l->s->out.w) *
           8;
}

/* x (n,C,H,W), w [O8][K][8], b (O) -> y (n,O8,HO,WO,8) */
static void forward(const struct nn_conv_shape *shape, int threads, int n, const float *x,
                    const float *w, const float *b, float *y, float *scratch)
{
    const struct layout l = layout_of(shape);
    const size_t image = nn_shape_floats(shape->in);

#pragma omp parallel for collapse(2) schedule(static) num_threads(threads)
    for (int i = 0; i < n; i++)
        for (int band = 0; band < l.bands; band++) {
            float *col = scratch + (size_t)nn_thread() * l.mine;

            gather(&l, x + (size_t)i * image, band, col);
            nn_gemm((struct nn_tile){.a = col,
                                     .b = w,
                                     .bias = b,
                                     .c = y + band_at(&l, i, band),
                                     .a_row = 1,
                                     .a_step = l.row,
                                     .b_step = 8,
                                     .b_panel = (size_t)l.taps * 8,
                                     .c_row = 8,
                                     .c_panel = (size_t)l.pixels * 8,
                                     .depth = l.taps},
                    band_pixels(&l, band), l.o8);
        }
}

/* Sums of one group of images, [O8][K+1][8]: the last tap is always one, its sum is db. */
static void group_sums(const struct layout *l, int begin, int end, const float *x, const float *dy,
                       float *col, float *sums)
{
    const size_t image = nn_shape_floats(l->s->in);

    if (begin == end)
        memset(sums, 0, l->partial * sizeof *sums);
    for (int i = begin; i < end; i++)
        for (int band = 0; band < l->bands; band++) {
            const int pixels = band_pixels(l, band);

            gather(l, x + (size_t)i * image, band, col);
            for (int j = 0; j < pixels; j++)
                col[(size_t)l->taps * l->row + (size_t)j] = 1;
            nn_gemm((struct nn_tile){.a = col,
                                     .b = dy + band_at(l, i, band),
                                     .c = sums,
                                     .a_row = l->row,
                                     .a_step = 1,
                                     .b_step = 8,
                                     .b_panel = (size_t)l->pixels * 8,
                                     .c_row = 8,
                                     .c_panel = (size_t)(l->taps + 1) * 8,
                                     .depth = pixels,
                                     .add = i > begin || band > 0},
                    l->taps + 1, l->o8);
        }
}

/* The sums of all groups -> dw [O8][K][8], db */
static void add_groups(const struct layout *l, const float *sums, float *dw, float *db)
{
    for (int o = 0; o < l->o8; o++)
        for (int k = 0; k <= l->taps; k++) {
            const float *from = sums + ((size_t)o * (size_t)(l->taps + 1) + (size_t)k) * 8;
            nn_v8 sum = nn_load(from);

            for (int g = 1; g < GROUPS; g++)
                sum += nn_load(from + (size_t)g * l->partial);
            if (k < l->taps)
                nn_store(dw + ((size_t)o * (size_t)l->taps + (size_t)k) * 8, sum);
            else if (db)
                nn_store(db + (size_t)o * 8, sum);
        }
}

/* w [O8][K][8] -> [K/8][O][8], zeros behind K */
static void turn(const struct layout *l, const float *w, float *turned)
{
    memset(turned, 0, l->turned * sizeof *turned);
    for (int o = 0; o < l->o8 * 8; o++)
        for (int k = 0; k < l->taps; k++)
            turned[((size_t)(k / 8) * (size_t)l->o8 * 8 + (size_t)o) * 8 + (size_t)(k % 8)] =
                w[((size_t)(o / 8) * (size_t)l->taps + (size_t)k) * 8 + (size_t)(o % 8)];
}

/* Adds the gradient of one pixel's taps to the inputs they read. */
static void scatter(const struct nn_conv_shape *s, int row, int column, const float *taps,
                    float *dx)
{
    for (int h = 0; h < s->kernel[0]; h++)
        for (int w = 0; w < s->kernel[1]; w++)
            for (int i = 0; i < s->in.c; i++, taps++) {
                const int r = row * s->stride[0] - s->pad[0] + h;
                const int c = column * s->stride[1] - s->pad[1] + w;

                if (r >= 0 && r < s->in.h && c >= 0 && c < s->in.w)
                    dx[nn_shape_at(s->in, i, r, c)] += *taps;
            }
}

/* dx (C,H,W) of an image; `taps` is room for the gradients of a band, [pixels][K/8*8] */
static void image_back(const struct layout *l, int image, const float *dy, const float *turned,
                       float *taps, float *dx)
{
    const size_t row = (size_t)nn_pad8(l->taps);

    memset(dx, 0, nn_shape_floats(l->s->in) * sizeof *dx);
    for (int band = 0; band < l->bands; band++) {
        const int pixels = band_pixels(l, band);

        for (int k = 0; k < (int)row / 8; k += NN_PANELS)
            nn_gemm_rows((struct nn_tile){.a = dy + band_at(l, image, band),
                                          .b = turned + (size_t)k * (size_t)l->o8 * 64,
                                          .c = taps + (size_t)k * 8,
                                          .a_row = 8,
                                          .a_step = 1,
                                          .a_block = (size_t)l->pixels * 8,
                                          .b_step = 8,
                                          .b_block = 64,
                                          .b_panel = (size_t)l->o8 * 64,
                                          .c_row = row,
                                          .c_panel = 8,
                                          .depth = 8,
                                          .blocks = l->o8},
                         pixels, least(NN_PANELS, (int)row / 8 - k));
        for (int j = 0; j < pixels; j++)
            scatter(l->s, band * l->rows + j / l->s->out.w, j % l->s->out.w, taps + (size_t)j * row,
                    dx);
    }
}

/* x (n,C,H,W), dy (n,O8,HO,WO,8), w -> dw, db (O), dx (n,C,H,W) */
static void backward(const struct nn_conv_shape *shape, int threads, int n, const float *x,
                     const float *dy, const float *w, float *dw, float *db, float *dx,
                     float *scratch)
{
    const struct layout l = layout_of(shape);
    float *shared = scratch + (size_t)threads * l.mine;

#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int g = 0; g < GROUPS; g++)
        group_sums(&l, n * g / GROUPS, n * (g + 1) / GROUPS, x, dy,
                   scratch + (size_t)nn_thread() * l.mine, shared + (size_t)g * l.partial);
    add_groups(&l, shared, dw, db);
    if (!dx)
        return;
    turn(&l, w, shared);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = 0; i < n; i++)
        image_back(&l, i, dy, shared, scratch + (size_t)nn_thread() * l.mine,
                   dx + (size_t)i * nn_shape_floats(shape->in));
}

const struct nn_simd_conv NN_LEVEL(direct) = {scratch_bytes, forward, backward};
