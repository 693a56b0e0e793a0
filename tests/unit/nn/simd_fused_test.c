/* SPDX-License-Identifier: MIT
 *
 * The fused kernels of every CPU level against plain loops in double, on awkward sizes, with 1 to
 * 3 threads, and against the level's own kernels one by one: the same bits. Padding lanes, whose
 * weights and values are zero, stay zero (the references have zeros there, met exactly).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/mem.h"
#include "nn/shape.h"
#include "nn/simd/simd.h"
#include "support/nets.h"

/* One call's operands, c channels of which c8*8 in memory, and what the kernels write. */
struct bench {
    const struct nn_simd *simd;
    int n, c, c8, h, w;
    size_t xs, ys;                       /* floats of x and of the pooled y */
    float *x, *dy, *dp;                  /* dp: gradient of the pooled y */
    float *mean, *scale, *shift, *b, *k; /* per channel; k: the constant of the backward */
    float *y, *dx, *sum_dy, *sum_dyx;
    float *y_apart, *dx_apart, *sums_apart;
    uint8_t *argmax, *argmax_apart;
    double *want;
};

static void *zeros(size_t count, size_t size)
{
    void *memory;

    assert_int_equal(base_tensor(count, size, "test data", &memory), BASE_OK);
    return memory;
}

/* (n,C8,S,8) values around `offset`, zero in the padding. */
static float *blocked(const struct bench *t, int n, int s, uint32_t number, float offset)
{
    size_t count = (size_t)n * (size_t)t->c8 * (size_t)s * 8;
    float *memory = zeros(count, sizeof *memory);

    support_fill(memory, count, number);
    for (size_t i = 0; i < count; i++) {
        size_t channel = i / ((size_t)s * 8) % (size_t)t->c8 * 8 + i % 8;

        memory[i] = channel < (size_t)t->c ? memory[i] + offset : 0;
    }
    return memory;
}

/* Memory that a kernel has to overwrite. */
static float *spoilt(size_t count)
{
    float *memory = zeros(count, sizeof *memory);

    for (size_t i = 0; i < count; i++)
        memory[i] = NAN;
    return memory;
}

static void bench_init(struct bench *t, const struct nn_simd *simd, const int shape[4])
{
    int s = shape[2] * shape[3];
    size_t channels;

    *t = (struct bench){.simd = simd, .n = shape[0], .c = shape[1], .h = shape[2], .w = shape[3]};
    t->c8 = nn_pad8(t->c) / 8;
    channels = (size_t)t->c8 * 8;
    t->xs = (size_t)t->n * channels * (size_t)s;
    t->ys = (size_t)t->n * channels * (size_t)(t->h / 2 * (t->w / 2));
    t->x = blocked(t, t->n, s, 1, 0.2f);
    t->dy = blocked(t, t->n, s, 2, 0.1f);
    t->dp = blocked(t, t->n, t->h / 2 * (t->w / 2), 3, 0.1f);
    t->mean = blocked(t, 1, 1, 4, 0);
    t->scale = blocked(t, 1, 1, 5, 0.3f); /* some below zero */
    t->shift = blocked(t, 1, 1, 6, -0.1f);
    t->b = blocked(t, 1, 1, 7, 0);
    t->k = blocked(t, 1, 1, 8, 0);
    t->y = spoilt(t->xs);
    t->dx = spoilt(t->xs);
    t->sum_dy = spoilt(channels);
    t->sum_dyx = spoilt(channels);
    t->y_apart = spoilt(t->xs);
    t->dx_apart = spoilt(t->xs);
    t->sums_apart = spoilt(2 * channels);
    t->argmax = zeros(t->ys + 1, 1);
    t->argmax_apart = zeros(t->ys + 1, 1);
    t->want = zeros(t->xs, sizeof *t->want);
}

static void bench_fini(struct bench *t)
{
    for (void **p = (void *[]){t->x, t->dy, t->dp, t->mean, t->scale, t->shift, t->b, t->k, t->y,
                               t->dx, t->sum_dy, t->sum_dyx, t->y_apart, t->dx_apart, t->sums_apart,
                               t->argmax, t->argmax_apart, t->want, NULL};
         *p; p++)
        base_free(*p);
}

static size_t channel_of(const struct bench *t, size_t i)
{
    return i / ((size_t)t->h * (size_t)t->w * 8) % (size_t)t->c8 * 8 + i % 8;
}

/* L2 distance relative to `want`; where that is zero it must be met exactly. */
static void check_near(size_t count, const float *got, const double *want)
{
    double wrong = 0, norm = 1e-300;

    for (size_t i = 0; i < count; i++) {
        double d = (double)got[i] - want[i];

        wrong += d * d;
        norm += want[i] * want[i];
        if (want[i] == 0)
            assert_true(got[i] == 0);
    }
    assert_true(wrong <= 1e-12 * norm);
}

static double normal(const struct bench *t, size_t i)
{
    size_t c = channel_of(t, i);

    return (double)t->x[i] * (double)t->scale[c] + (double)t->shift[c];
}

/* From a gradient after the batch-norm in `grad` (xs): the sums and dx, against plain loops. */
static void check_backward(const struct bench *t, const double *grad)
{
    size_t channels = (size_t)t->c8 * 8;
    double *sums = zeros(2 * channels, sizeof *sums);

    for (size_t i = 0; i < t->xs; i++) {
        size_t c = channel_of(t, i);

        sums[c] += grad[i];
        sums[channels + c] += grad[i] * ((double)t->x[i] - (double)t->mean[c]);
        t->want[i] =
            (double)t->scale[c] * grad[i] + (double)t->b[c] * (double)t->x[i] + (double)t->k[c];
    }
    check_near(t->xs, t->dx, t->want);
    check_near(channels, t->sum_dy, sums);
    check_near(channels, t->sum_dyx, sums + channels);
    base_free(sums);
}

/* The sums and dx of the gradient in dx_apart by the plain batch-norm kernels: the same bits. */
static void check_bits(const struct bench *t)
{
    int s = t->h * t->w;
    size_t channels = (size_t)t->c8 * 8;

    t->simd->bn_backward_sums(t->n, t->c8, s, t->x, t->mean, t->dx_apart, t->sums_apart,
                              t->sums_apart + channels);
    assert_memory_equal(t->sum_dy, t->sums_apart, channels * sizeof(float));
    assert_memory_equal(t->sum_dyx, t->sums_apart + channels, channels * sizeof(float));
    t->simd->bn_backward(t->n, t->c8, s, t->x, t->dx_apart, t->scale, t->b, t->k, t->dx_apart);
    assert_memory_equal(t->dx, t->dx_apart, t->xs * sizeof(float));
}

static void check_bn_relu(const struct nn_simd *simd, const int shape[4])
{
    struct bench t;
    int s = shape[2] * shape[3];
    double *grad;

    bench_init(&t, simd, shape);
    grad = zeros(t.xs, sizeof *grad);
    simd->bn_relu(t.n, t.c8, s, t.x, t.scale, t.shift, t.y);
    simd->bn_relu_sums(t.n, t.c8, s, t.x, t.mean, t.scale, t.shift, t.dy, t.sum_dy, t.sum_dyx);
    simd->bn_relu_backward(t.n, t.c8, s, t.x, t.dy, t.scale, t.shift, t.b, t.k, t.dx);
    for (size_t i = 0; i < t.xs; i++) {
        t.want[i] = normal(&t, i) > 0 ? normal(&t, i) : 0;
        grad[i] = normal(&t, i) > 0 ? (double)t.dy[i] : 0;
    }
    check_near(t.xs, t.y, t.want);
    check_backward(&t, grad);
    simd->bn_apply(t.n, t.c8, s, t.x, t.scale, t.shift, t.y_apart);
    simd->relu(t.xs, t.y_apart, t.y_apart);
    assert_memory_equal(t.y, t.y_apart, t.xs * sizeof(float));
    simd->relu_backward(t.xs, t.y_apart, t.dy, t.dx_apart);
    check_bits(&t);
    simd->bn_relu_backward(t.n, t.c8, s, t.x, t.dy, t.scale, t.shift, t.b, t.k, t.dy);
    assert_memory_equal(t.dy, t.dx, t.xs * sizeof(float)); /* in place */
    simd->bn_relu(t.n, t.c8, s, t.x, t.scale, t.shift, t.x);
    assert_memory_equal(t.x, t.y, t.xs * sizeof(float));
    base_free(grad);
    bench_fini(&t);
}

/* Place in x of corner k of the window of pooled element i. */
static size_t corner(const struct bench *t, size_t i, int k)
{
    size_t w = (size_t)t->w, wo = w / 2, area = (size_t)(t->h / 2) * wo;
    size_t plane = i / 8 / area, row = i / 8 % area / wo * 2 + (size_t)k / 2;
    size_t column = i / 8 % wo * 2 + (size_t)k % 2;

    return ((plane * (size_t)t->h + row) * w + column) * 8 + i % 8;
}

/* y and argmax of ReLU and pooling of (xs) `values`; dp goes back to `grad`. */
static void check_pooled(const struct bench *t, const double *values, double *grad)
{
    double *want = zeros(t->ys + 1, sizeof *want);

    for (size_t i = 0; i < t->ys; i++) {
        int best = 4;

        for (int k = 0; k < 4; k++)
            if (values[corner(t, i, k)] > want[i]) {
                want[i] = values[corner(t, i, k)];
                best = k;
            }
        assert_int_equal(t->argmax[i], best);
        if (best < 4)
            grad[corner(t, i, best)] = (double)t->dp[i];
    }
    check_near(t->ys, t->y, want);
    base_free(want);
}

static struct nn_pool_shape halves(const struct bench *t)
{
    return (struct nn_pool_shape){t->c8, t->h, t->w, t->h / 2, t->w / 2, {2, 2}, {2, 2}, {0, 0}};
}

/* ReLU and maxpool of y_apart one by one: y; dp goes back to dx_apart. */
static void pool_apart(const struct bench *t)
{
    struct nn_pool_shape shape = halves(t);
    float *pooled = spoilt(t->ys + 1);

    t->simd->relu(t->xs, t->y_apart, t->y_apart);
    t->simd->maxpool(t->n, &shape, t->y_apart, pooled, t->argmax_apart);
    assert_memory_equal(t->y, pooled, t->ys * sizeof(float));
    t->simd->maxpool_backward(t->n, &shape, t->dp, t->argmax_apart, t->dx_apart);
    t->simd->relu_backward(t->xs, t->y_apart, t->dx_apart, t->dx_apart);
    base_free(pooled);
}

static void check_bn_relu_pool(const struct nn_simd *simd, const int shape[4])
{
    struct bench t;
    double *grad;

    bench_init(&t, simd, shape);
    grad = zeros(t.xs, sizeof *grad);
    simd->bn_relu_pool(t.n, t.c8, t.h, t.w, t.x, t.scale, t.shift, t.y, t.argmax);
    for (size_t i = 0; i < t.xs; i++)
        t.want[i] = normal(&t, i);
    check_pooled(&t, t.want, grad);
    simd->bn_relu_pool_sums(t.n, t.c8, t.h, t.w, t.x, t.mean, t.dp, t.argmax, t.sum_dy, t.sum_dyx);
    simd->bn_relu_pool_backward(t.n, t.c8, t.h, t.w, t.x, t.dp, t.argmax, t.scale, t.b, t.k, t.dx);
    check_backward(&t, grad);
    simd->bn_apply(t.n, t.c8, t.h * t.w, t.x, t.scale, t.shift, t.y_apart);
    pool_apart(&t);
    check_bits(&t);
    base_free(grad);
    bench_fini(&t);
}

static void check_relu_pool(const struct nn_simd *simd, const int shape[4])
{
    struct bench t;
    size_t planes;
    double *grad;

    bench_init(&t, simd, shape);
    planes = (size_t)t.n * (size_t)t.c8;
    grad = zeros(t.xs, sizeof *grad);
    t.x[8] = t.x[0] = 0.75f; /* a tie: the first wins */
    simd->relu_pool(planes, t.h, t.w, t.x, t.y, t.argmax);
    for (size_t i = 0; i < t.xs; i++)
        t.want[i] = (double)t.x[i];
    check_pooled(&t, t.want, grad);
    simd->relu_pool_backward(planes, t.h, t.w, 2, t.dp, t.argmax, t.dx);
    for (size_t i = 0; i < t.xs; i++)
        t.dx[i] /= 2; /* exact */
    check_near(t.xs, t.dx, grad);
    memcpy(t.y_apart, t.x, t.xs * sizeof(float));
    pool_apart(&t);
    assert_memory_equal(t.dx, t.dx_apart, t.xs * sizeof(float));
    base_free(grad);
    bench_fini(&t);
}

/* Divergence must not be hidden, wherever in the window it is; no gradient goes back there. */
static void check_nan(const struct nn_simd *simd, const int shape[4])
{
    for (int k = 0; k < 4; k++) {
        struct bench t;

        bench_init(&t, simd, shape);
        t.x[corner(&t, 0, k)] = NAN;
        simd->bn_relu(t.n, t.c8, t.h * t.w, t.x, t.scale, t.shift, t.y);
        assert_true(isnan(t.y[corner(&t, 0, k)]));
        simd->bn_relu_pool(t.n, t.c8, t.h, t.w, t.x, t.scale, t.shift, t.y, t.argmax);
        assert_true(isnan(t.y[0]) && t.argmax[0] == 4);
        simd->relu_pool((size_t)t.n * (size_t)t.c8, t.h, t.w, t.x, t.y, t.argmax);
        assert_true(isnan(t.y[0]) && t.argmax[0] == 4 && !isnan(t.y[1]));
        bench_fini(&t);
    }
}

typedef void (*check)(const struct nn_simd *simd, const int shape[4]);

static void every_level(check checked, const int (*shapes)[4], size_t count)
{
    for (enum base_cpu_level level = 0; level <= base_cpu_best(); level++)
        for (int threads = 1; threads <= 3; threads++) {
            omp_set_num_threads(threads);
            for (size_t i = 0; i < count; i++)
                checked(nn_simd_of(level), shapes[i]);
        }
}

/* n c h w: sums of less than a run, of more, of an odd number of vectors */
static const int any[][4] = {{1, 3, 1, 1},  {5, 10, 3, 5}, {2, 12, 8, 8},
                             {3, 24, 1, 1}, {3, 8, 1, 65}, {2, 20, 16, 24}};
static const int even[][4] = {{1, 3, 2, 2},  {5, 10, 4, 6},  {2, 12, 8, 8},
                              {3, 24, 2, 2}, {3, 8, 10, 14}, {2, 20, 16, 24}};

static void test_bn_relu(void **unused)
{
    (void)unused;
    every_level(check_bn_relu, any, sizeof any / sizeof *any);
}

static void test_bn_relu_pool(void **unused)
{
    (void)unused;
    every_level(check_bn_relu_pool, even, sizeof even / sizeof *even);
}

static void test_relu_pool(void **unused)
{
    (void)unused;
    every_level(check_relu_pool, even, sizeof even / sizeof *even);
}

static void test_nan(void **unused)
{
    (void)unused;
    every_level(check_nan, even, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bn_relu),
        cmocka_unit_test(test_bn_relu_pool),
        cmocka_unit_test(test_relu_pool),
        cmocka_unit_test(test_nan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
