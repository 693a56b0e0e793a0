/* SPDX-License-Identifier: MIT
 *
 * 1x1 convolutions as matrix products of the pixels as they lie: OIhw8i8o weights are panels
 * [O8][I][8] already, and a pixel's channels are blocks of eight at a fixed distance. With a
 * stride, only the pixels it meets are read, row by row. Threads own images, or input channels in
 * the gradient of the weights: results do not depend on their number.
 */
#include <string.h>

#include "nn/conv/form.h"
#include "nn/simd/gemm.h"

enum {
    SLICE = NN_DEPTH / 8, /* channel blocks contracted in one go */
    INPUTS = 4,           /* rows of a tile of dw: half a block, eight accumulators */
};

/* Pixels at equal distances: a whole image without stride, else the rows of the output. */
struct runs {
    int i8, o8, count, length;
    size_t in, out;         /* floats of a plane of x and y */
    size_t in_run, out_run; /* floats from run to run */
    size_t in_step;         /* floats from pixel to pixel of x; 8 in y */
};

static struct runs runs_of(const struct nn_conv_shape *s)
{
    const bool rows = s->stride[0] > 1 || s->stride[1] > 1;
    const size_t width = (size_t)s->in.w * 8;

    return (struct runs){.i8 = nn_pad8(s->in.c) / 8,
                         .o8 = nn_pad8(s->out.c) / 8,
                         .count = rows ? s->out.h : 1,
                         .length = rows ? s->out.w : s->out.h * s->out.w,
                         .in = (size_t)s->in.h * width,
                         .out = (size_t)s->out.h * (size_t)s->out.w * 8,
                         .in_run = (size_t)s->stride[0] * width,
                         .out_run = (size_t)s->out.w * 8,
                         .in_step = (size_t)s->stride[1] * 8};
}

static bool gemm1x1_serves(const struct nn_conv_shape *s)
{
    return s->kernel[0] == 1 && s->kernel[1] == 1 && s->pad[0] == 0 && s->pad[1] == 0 &&
           s->groups == 1 && !s->in.planar;
}

static const struct nn_cost_rates rates[BASE_CPU_LEVELS] = {
    [BASE_CPU_portable] = {{93.7, 85, 1}, {97, 983, 2457}},
    [BASE_CPU_avx2] = {{28.6, 1, 2}, {36.8, 175, 4740}},
    [BASE_CPU_avx512] = {{28.6, 1, 2}, {36.8, 175, 4740}},
};

static double gemm1x1_cost(const struct nn_conv_shape *shape, enum base_cpu_level level)
{
    return nn_cost_seconds(shape, &rates[level], nn_cost_plain(shape));
}

static size_t gemm1x1_scratch(const struct nn_conv_shape *shape, int threads)
{
    (void)threads; /* w transposed */
    return (size_t)nn_pad8(shape->in.c) * (size_t)nn_pad8(shape->out.c) * sizeof(float);
}

/* t's pixels times all panels: from -> to channel blocks; a, b, c and the pixels' strides set. */
static void product(struct nn_tile t, int from, int to, int pixels)
{
    t.a_step = 1;
    t.b_step = 8;
    t.b_block = 64;
    t.b_panel = (size_t)from * 64;
    t.depth = 8;
    for (int at = 0; at < from; at += SLICE)
        for (int p = 0; p < to; p += NN_PANELS) {
            struct nn_tile slice = t;

            slice.a += (size_t)at * t.a_block;
            slice.b += (size_t)at * 64 + (size_t)p * t.b_panel;
            slice.c += (size_t)p * t.c_panel;
            slice.bias = t.bias ? t.bias + p * 8 : NULL;
            slice.blocks = nn_least(SLICE, from - at);
            slice.add = at > 0;
            nn_gemm_rows(slice, pixels, nn_least(NN_PANELS, to - p));
        }
}

/* x (n,I8,H,W,8), w [O8][I][8], b (O) -> y (n,O8,HO,WO,8) */
static base_status gemm1x1_forward(const struct nn_conv_work *work, int n, const float *x,
                                   const float *w, const float *b, float *y, void *scratch)
{
    const struct runs r = runs_of(&work->shape);

    (void)scratch;
#pragma omp parallel for collapse(2) schedule(static) num_threads(work->threads)
    for (int i = 0; i < n; i++)
        for (int run = 0; run < r.count; run++)
            product((struct nn_tile){.a = x + (size_t)(i * r.i8) * r.in + (size_t)run * r.in_run,
                                     .b = w,
                                     .bias = b,
                                     .c = y + (size_t)(i * r.o8) * r.out + (size_t)run * r.out_run,
                                     .a_row = r.in_step,
                                     .a_block = r.in,
                                     .c_row = 8,
                                     .c_panel = r.out},
                    r.i8, r.o8, r.length);
    return BASE_OK;
}

/* dw [O8][I][8] of one block of inputs: Σ x ⊗ dy over all pixels, run by run */
static void weights_of(const struct runs *r, int n, int block, const float *x, const float *dy,
                       float *dw)
{
    for (int i = 0; i < n; i++)
        for (int run = 0; run < r->count; run++)
            for (int o = 0; o < r->o8; o += NN_PANELS)
                for (int k = 0; k < 8; k += INPUTS)
                    nn_gemm((struct nn_tile){.a = x + (size_t)(i * r->i8 + block) * r->in +
                                                  (size_t)run * r->in_run + k,
                                             .b = dy + (size_t)(i * r->o8 + o) * r->out +
                                                  (size_t)run * r->out_run,
                                             .c = dw + (size_t)(o * r->i8 + block) * 64 + k * 8,
                                             .a_row = 1,
                                             .a_step = r->in_step,
                                             .b_step = 8,
                                             .b_panel = r->out,
                                             .c_row = 8,
                                             .c_panel = (size_t)r->i8 * 64,
                                             .depth = r->length,
                                             .add = i > 0 || run > 0},
                            INPUTS, nn_least(NN_PANELS, r->o8 - o));
}

/* dy, w turned [I8][O][8] -> dx (I8,H,W,8) of an image; pixels between strides get zeros */
static void image_back(const struct runs *r, const float *dy, const float *turned, float *dx)
{
    if (r->in_step > 8 || r->count > 1)
        memset(dx, 0, (size_t)r->i8 * r->in * sizeof *dx);
    for (int run = 0; run < r->count; run++)
        product((struct nn_tile){.a = dy + (size_t)run * r->out_run,
                                 .b = turned,
                                 .c = dx + (size_t)run * r->in_run,
                                 .a_row = 8,
                                 .a_block = r->out,
                                 .c_row = r->in_step,
                                 .c_panel = r->in},
                r->o8, r->i8, r->length);
}

/* dy (n,O8,HO,WO,8) -> db (O): sums in fp32 per image, in double over the images */
static void bias_gradient(const struct runs *r, int n, const float *dy, float *db)
{
    for (int o = 0; o < r->o8; o++) {
        double total[8] = {0};

        for (int i = 0; i < n; i++) {
            const float *from = dy + (size_t)(i * r->o8 + o) * r->out;
            nn_v8 sum = {0};

            for (size_t j = 0; j < r->out; j += 8)
                sum += nn_load(from + j);
            for (int lane = 0; lane < 8; lane++)
                total[lane] += (double)sum[lane];
        }
        for (int lane = 0; lane < 8; lane++)
            db[o * 8 + lane] = (float)total[lane];
    }
}

/* x (n,I8,H,W,8), dy (n,O8,HO,WO,8), w -> dw, db (O), dx (n,I8,H,W,8) */
static base_status gemm1x1_backward(const struct nn_conv_work *work, int n, const float *x,
                                    const float *dy, const float *w, float *dw, float *db,
                                    float *dx, void *scratch)
{
    const struct runs r = runs_of(&work->shape);
    float *turned = scratch;

    if (db)
        bias_gradient(&r, n, dy, db);
#pragma omp parallel num_threads(work->threads)
    {
#pragma omp for schedule(dynamic, 1)
        for (int block = 0; block < r.i8; block++) {
            if (dw)
                weights_of(&r, n, block, x, dy, dw);
            for (int o = 0; o < r.o8 && dx; o++)
                nn_transpose(w + (size_t)(o * r.i8 + block) * 64,
                             turned + (size_t)(block * r.o8 + o) * 64);
        }
#pragma omp for schedule(static)
        for (int i = 0; i < (dx ? n : 0); i++)
            image_back(&r, dy + (size_t)(i * r.o8) * r.out, turned, dx + (size_t)(i * r.i8) * r.in);
    }
    return BASE_OK;
}

const struct nn_conv NN_LEVEL(conv_gemm1x1) = {
    .name = "gemm1x1",
    .help = "1x1 kernels as matrix products: any stride",
    .share = 1,
    .serves = gemm1x1_serves,
    .cost = gemm1x1_cost,
    .scratch = gemm1x1_scratch,
    .forward = gemm1x1_forward,
    .backward = gemm1x1_backward,
};
