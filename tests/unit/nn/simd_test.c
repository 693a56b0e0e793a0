/* SPDX-License-Identifier: MIT
 *
 * Every kernel of every CPU level that runs here against plain loops in double, on awkward sizes.
 * Each check returns a digest of all bytes the kernel wrote: it must not change with the number
 * of threads. A new level or a new kernel behind an old slot is checked by being in the table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "nn/shape.h"
#include "nn/simd/simd.h"

typedef uint64_t (*check)(const struct nn_simd *simd);

static size_t product(int a, int b, int c)
{
    return (size_t)a * (size_t)b * (size_t)c;
}

static void *zeros(size_t count, size_t size)
{
    void *memory;

    assert_int_equal(base_tensor(count + 1, size, "test data", &memory), BASE_OK);
    return memory;
}

/* Values in [-1,1) plus `offset`. */
static float *values(size_t count, uint32_t stream, float offset)
{
    const struct base_rng rng = base_rng_of(3, BASE_STREAM_TEST, stream, 0, 0);
    float *memory = zeros(count, sizeof *memory);

    for (size_t i = 0; i < count; i++)
        memory[i] = 2 * base_rng_unit(base_rng_u32(&rng, (uint32_t)i)) - 1 + offset;
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

/* (rows,c8,s,8) values whose last `c8*8 - c` channels are the padding zeros. */
static float *blocked(int rows, int c, int s, uint32_t stream, float offset)
{
    const int c8 = nn_pad8(c) / 8;
    float *memory = values(product(rows, c8 * 8, s), stream, offset);

    for (int i = 0; i < rows * s; i++)
        for (int pad = c; pad < c8 * 8; pad++)
            memory[((i / s * c8 + pad / 8) * s + i % s) * 8 + pad % 8] = 0;
    return memory;
}

static uint64_t digest(uint64_t seed, const void *bytes, size_t count)
{
    const unsigned char *b = bytes;
    uint64_t hash = seed ^ 0xcbf29ce484222325u;

    for (size_t i = 0; i < count; i++)
        hash = (hash ^ b[i]) * 0x100000001b3u;
    return hash;
}

/* L2 distance relative to `want`, which where zero must be met exactly. */
static double error(size_t count, const float *got, const double *want)
{
    double wrong = 0, norm = 1e-300;

    for (size_t i = 0; i < count; i++) {
        const double d = (double)got[i] - want[i];

        wrong += d * d;
        norm += want[i] * want[i];
        if (want[i] == 0)
            assert_true(got[i] == 0);
    }
    return sqrt(wrong / norm);
}

/* x (n,K), w [O8][K][8], all three passes of one dense layer. */
static uint64_t dense_case(const struct nn_simd *simd, int n, int k, int o, bool bias)
{
    const int o8 = nn_pad8(o) / 8;
    const size_t xs = product(n, k, 1), ys = product(n, o8, 8), ws = product(k, o8, 8);
    /* mostly positive: a sum of few terms that cancel has no relative error to speak of */
    float *x = values(xs, 1, 0.7f), *w = blocked(1, o, k, 2, 0.7f), *b = blocked(1, o, 1, 3, 0);
    float *dy = blocked(n, o, 1, 4, 0.7f), *y = spoilt(ys), *dx = spoilt(xs), *dw = spoilt(ws);
    float *db = spoilt((size_t)o8 * 8);
    double *y2 = zeros(ys, sizeof *y2), *dx2 = zeros(xs, sizeof *y2), *dw2 = zeros(ws, sizeof *y2);
    double *db2 = zeros((size_t)o8 * 8, sizeof *y2);
    uint64_t hash;

    simd->dense_forward(NULL, n, k, o8, x, w, bias ? b : NULL, y);
    simd->dense_backward_data(n, k, o8, dy, w, dx);
    simd->dense_backward_weights(n, k, o8, x, dy, dw, bias ? db : NULL);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < o; j++) {
            const double g = (double)dy[i * o8 * 8 + j];

            y2[i * o8 * 8 + j] = bias ? (double)b[j] : 0;
            db2[j] += g;
            for (int t = 0; t < k; t++) {
                const int at = (j / 8 * k + t) * 8 + j % 8;

                y2[i * o8 * 8 + j] += (double)x[i * k + t] * (double)w[at];
                dx2[i * k + t] += g * (double)w[at];
                dw2[at] += g * (double)x[i * k + t];
            }
        }
    assert_true(error(ys, y, y2) < 1e-6);
    assert_true(error(xs, dx, dx2) < 1e-6);
    assert_true(error(ws, dw, dw2) < 1e-6);
    if (bias)
        assert_true(error((size_t)o8 * 8, db, db2) < 1e-6);
    else
        assert_true(isnan(db[0]));
    hash = digest(digest(digest(0, y, ys * 4), dx, xs * 4), dw, ws * 4);
    for (void **p = (void *[]){x, w, b, dy, y, dx, dw, db, y2, dx2, dw2, db2, NULL}; *p; p++)
        base_free(*p);
    return hash;
}

static uint64_t dense(const struct nn_simd *simd)
{
    static const int ns[] = {1, 5, 31}, ks[] = {1, 7, 72, 75}, os[] = {3, 10, 128};
    uint64_t hash = dense_case(simd, 70, 520, 264, true); /* more than one block of everything */

    for (size_t n = 0; n < 3; n++)
        for (size_t k = 0; k < 4; k++)
            for (size_t o = 0; o < 3; o++)
                hash = hash * 31 + dense_case(simd, ns[n], ks[k], os[o], o % 2 == 0);
    return hash;
}

/* What the kernels of batch-norm compute for channel c, in double. */
struct bn_want {
    double sum[32], squares[32], sum_dy[32], sum_dyx[32];
};

static struct bn_want bn_reference(int n, int c8, int s, const float *x, const float *dy,
                                   const float *mean)
{
    struct bn_want want = {0};

    for (int i = 0; i < n * c8 * s * 8; i++) {
        const int c = i / (s * 8) % c8 * 8 + i % 8;
        const double d = (double)x[i] - (double)mean[c];

        want.sum[c] += (double)x[i];
        want.sum_dy[c] += (double)dy[i];
        want.sum_dyx[c] += (double)dy[i] * d;
    }
    for (int i = 0; i < n * c8 * s * 8; i++) {
        const int c = i / (s * 8) % c8 * 8 + i % 8;
        const double d = (double)x[i] - want.sum[c] / (n * s);

        want.squares[c] += d * d;
    }
    return want;
}

static uint64_t bn_case(const struct nn_simd *simd, int n, int c, int s)
{
    const int c8 = nn_pad8(c) / 8;
    const size_t count = product(n, c8 * 8, s), channels = product(c8, 8, 1);
    float *x = blocked(n, c, s, 1, 3), *dy = blocked(n, c, s, 2, 0.5f);
    float *y = spoilt(count), *dx = spoilt(count);
    float *mean = blocked(1, c, 1, 3, 3), *a = blocked(1, c, 1, 4, 2), *b = blocked(1, c, 1, 5, 0);
    float got[4][32];
    double *y2 = zeros(count, sizeof *y2), *dx2 = zeros(count, sizeof *dx2);
    const struct bn_want want = bn_reference(n, c8, s, x, dy, mean);
    uint64_t hash;

    simd->bn_moments(n, c8, s, x, got[0], got[1]);
    simd->bn_backward_sums(n, c8, s, x, mean, dy, got[2], got[3]);
    simd->bn_apply(n, c8, s, x, a, b, y);
    simd->bn_backward(n, c8, s, x, dy, a, b, mean, dx);
    for (size_t i = 0; i < count; i++) {
        const size_t ch = i / product(s, 8, 1) % (size_t)c8 * 8 + i % 8;

        y2[i] = (double)x[i] * (double)a[ch] + (double)b[ch];
        dx2[i] = (double)a[ch] * (double)dy[i] + (double)b[ch] * (double)x[i] + (double)mean[ch];
    }
    assert_true(error(channels, got[0], want.sum) < 1e-6);
    assert_true(error(channels, got[1], want.squares) < 1e-6);
    assert_true(error(channels, got[2], want.sum_dy) < 1e-6);
    assert_true(error(channels, got[3], want.sum_dyx) < 1e-6);
    assert_true(error(count, y, y2) < 1e-6);
    assert_true(error(count, dx, dx2) < 1e-6);
    hash = digest(digest(0, y, count * 4), dx, count * 4);
    for (int i = 0; i < 4; i++)
        hash = digest(hash, got[i], channels * 4);
    for (void **p = (void *[]){x, dy, y, dx, mean, a, b, y2, dx2, NULL}; *p; p++)
        base_free(*p);
    return hash;
}

static uint64_t batchnorm(const struct nn_simd *simd)
{
    return bn_case(simd, 1, 3, 1) + 3 * bn_case(simd, 5, 10, 7) + 5 * bn_case(simd, 3, 32, 131) +
           7 * bn_case(simd, 64, 8, 1024);
}

/* Σ x and Σ (x - mean)² of values far from zero, the first sample unlike all others. */
static void moments_case(const struct nn_simd *simd, int n, int s, float offset, float first)
{
    float *x = values(product(n, s, 8), 1, offset), sum[8], squares[8];
    float *mean = zeros(8, sizeof *mean);
    struct bn_want want;

    for (int i = 0; i < s * 8; i++)
        x[i] += first;
    want = bn_reference(n, 1, s, x, x, mean);
    simd->bn_moments(n, 1, s, x, sum, squares);
    assert_true(error(8, sum, want.sum) < 1e-6);
    assert_true(error(8, squares, want.squares) < 1e-6 * n);
    base_free(x);
    base_free(mean);
}

static void test_moments(void **unused)
{
    (void)unused;
    for (enum base_cpu_level level = 0; level <= base_cpu_best(); level++) {
        moments_case(nn_simd_of(level), 16, 49, 1000, 0);
        moments_case(nn_simd_of(level), 32, 25, -300, 40);
        moments_case(nn_simd_of(level), 64, 1, 5, -1000);
    }
}

static uint64_t elementwise_case(const struct nn_simd *simd, size_t count)
{
    float *a = values(count, 1, 0), *b = values(count, 2, 0), *y = spoilt(count);
    double want = 0, got = simd->square_sum(count, a);
    uint64_t hash = digest(0, &got, sizeof got);

    for (size_t i = 0; i < count; i++)
        want += (double)a[i] * (double)a[i];
    assert_true(fabs(got - want) <= 1e-12 * want);
    simd->relu(count, a, y);
    for (size_t i = 0; i < count; i++)
        assert_true(y[i] == (a[i] > 0 ? a[i] : 0));
    hash = digest(hash, y, count * 4);
    simd->relu_backward(count, y, b, y); /* in place */
    for (size_t i = 0; i < count; i++)
        assert_true(y[i] == (a[i] > 0 ? b[i] : 0));
    simd->add(count, y, b, y);
    for (size_t i = 0; i < count; i++)
        assert_true(y[i] == (a[i] > 0 ? b[i] : 0) + b[i]);
    simd->scale(count, 0.3f, y);
    for (size_t i = 0; i < count; i++)
        assert_true(y[i] == ((a[i] > 0 ? b[i] : 0) + b[i]) * 0.3f);
    hash = digest(hash, y, count * 4);
    if (count > 0) { /* divergence must not be hidden */
        a[count / 2] = NAN;
        simd->relu(count, a, a);
        assert_true(isnan(a[count / 2]));
    }
    base_free(a);
    base_free(b);
    base_free(y);
    return hash;
}

static uint64_t elementwise(const struct nn_simd *simd)
{
    static const size_t counts[] = {0, 1, 7, 8, 1000, 4096 + 3, 70001};
    uint64_t hash = 0;

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        hash = hash * 31 + elementwise_case(simd, counts[i]);
    return hash;
}

static uint64_t dropout_case(const struct nn_simd *simd, size_t floats, float rate)
{
    static const uint32_t ids[] = {5, 0xffffffffu, 17};
    const uint64_t seed = 0x123456789abcdef0u;
    float *x = values(3 * floats, 1, 0), *y = spoilt(3 * floats);
    uint8_t *marks = base_calloc(3 * floats, 1);
    uint64_t hash;

    memset(marks, 2, 3 * floats);
    simd->dropout(3, floats, rate, seed, 4, 9, ids, x, y, marks);
    for (size_t j = 0; j < 3; j++)
        for (size_t i = 0; i < floats; i++) {
            const struct base_rng rng = base_rng_of(seed, BASE_STREAM_DROPOUT, 4, 9, ids[j]);
            const bool lives = base_rng_unit(base_rng_u32(&rng, (uint32_t)i)) >= rate;
            const size_t at = j * floats + i;

            assert_true(y[at] == (lives ? x[at] * (1 / (1 - rate)) : 0));
            assert_int_equal(marks[at], lives ? 2 : NN_POOL_DEAD);
        }
    hash = digest(0, y, 3 * floats * 4);
    simd->dropout(3, floats, rate, seed, 4, 9, ids, x, x, NULL);
    assert_memory_equal(x, y, 3 * floats * 4);
    base_free(x);
    base_free(y);
    base_free(marks);
    return hash;
}

static uint64_t dropout(const struct nn_simd *simd)
{
    return dropout_case(simd, 1, 0.5f) + 3 * dropout_case(simd, 33, 0) +
           5 * dropout_case(simd, 9216, 0.25f) + 7 * dropout_case(simd, 4099, 0.9f);
}

struct window {
    struct nn_pool_shape s;
    int n, c;
};

/* Index in x of position t of the window of output `out` in plane p, or -1 in the padding. */
static int window_at(const struct nn_pool_shape *s, int p, int out, int t, int lane)
{
    const int h = out / s->wo * s->stride[0] - s->pad[0] + t / s->kernel[1];
    const int w = out % s->wo * s->stride[1] - s->pad[1] + t % s->kernel[1];

    if (h < 0 || h >= s->h || w < 0 || w >= s->w)
        return -1;
    return ((p * s->h + h) * s->w + w) * 8 + lane;
}

/* Plain pooling: y, argmax, and the gradients of both kinds, for output element i. */
static void pool_value(const struct nn_pool_shape *s, int i, const float *x, double g, float *max,
                       uint8_t *arg, double *mean, double *dx_max, double *dx_mean)
{
    const int area = s->kernel[0] * s->kernel[1], lane = i % 8, out = i / 8 % (s->ho * s->wo);
    const int p = i / 8 / (s->ho * s->wo);

    max[i] = -INFINITY;
    for (int t = 0; t < area; t++) {
        const int at = window_at(s, p, out, t, lane);

        if (at < 0)
            continue;
        mean[i] += (double)x[at] / area;
        dx_mean[at] += g / area;
        if (x[at] > max[i]) {
            max[i] = x[at];
            arg[i] = (uint8_t)t;
        }
    }
    dx_max[window_at(s, p, out, arg[i], lane)] += g;
}

static uint64_t pool_case(const struct nn_simd *simd, const struct window *w)
{
    const struct nn_pool_shape s = w->s;
    const size_t xs = product(w->n, s.c8 * 8, s.h * s.w);
    const size_t ys = product(w->n, s.c8 * 8, s.ho * s.wo);
    float *x = blocked(w->n, w->c, s.h * s.w, 1, -0.9f);
    float *dy = blocked(w->n, w->c, s.ho * s.wo, 2, 0), *y = spoilt(ys), *dx = spoilt(xs);
    float *max = zeros(ys, sizeof *max);
    double *mean = zeros(ys, sizeof *mean), *dx1 = zeros(xs, sizeof *dx1);
    double *dx2 = zeros(xs, sizeof *dx2);
    uint8_t *got = zeros(ys, 1), *want = zeros(ys, 1);
    uint64_t hash;

    for (size_t i = 0; i < ys; i++)
        pool_value(&s, (int)i, x, (double)dy[i], max, want, mean, dx1, dx2);
    simd->maxpool(w->n, &s, x, y, got);
    assert_memory_equal(y, max, ys * sizeof *y);
    assert_memory_equal(got, want, ys);
    simd->maxpool_backward(w->n, &s, dy, got, dx);
    assert_true(error(xs, dx, dx1) < 1e-6);
    hash = digest(0, dx, xs * 4);
    simd->avgpool(w->n, &s, x, y);
    assert_true(error(ys, y, mean) < 1e-6);
    simd->avgpool_backward(w->n, &s, dy, dx);
    assert_true(error(xs, dx, dx2) < 1e-6);
    hash = digest(digest(hash, dx, xs * 4), y, ys * 4);
    x[0] = NAN; /* the first window sees it unless it lies in a gap between windows */
    simd->maxpool(w->n, &s, x, y, got);
    assert_true(isnan(y[0]));
    for (void **p = (void *[]){x, dy, y, dx, max, mean, dx1, dx2, got, want, NULL}; *p; p++)
        base_free(*p);
    return hash;
}

static uint64_t pool(const struct nn_simd *simd)
{
    /* c8  h   w  ho wo  kernel    stride  pad     n  c */
    static const struct window windows[] = {
        {{1, 2, 2, 1, 1, {2, 2}, {2, 2}, {0, 0}}, 1, 3},
        {{2, 8, 6, 4, 3, {2, 2}, {2, 2}, {0, 0}}, 5, 10},
        {{1, 7, 5, 3, 2, {2, 2}, {2, 2}, {0, 0}}, 2, 8},
        {{2, 9, 8, 5, 4, {3, 3}, {2, 2}, {1, 1}}, 3, 12},
        {{1, 5, 5, 5, 5, {3, 3}, {1, 1}, {1, 1}}, 2, 8},
        {{1, 6, 9, 4, 3, {3, 2}, {2, 4}, {1, 1}}, 2, 5},
        {{1, 17, 16, 3, 2, {15, 15}, {7, 7}, {7, 7}}, 1, 8},
        {{3, 4, 4, 1, 1, {4, 4}, {1, 1}, {0, 0}}, 3, 24},
    };
    uint64_t hash = 0;

    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        hash = hash * 31 + pool_case(simd, &windows[i]);
    return hash;
}

static void every_level(check checked)
{
    for (enum base_cpu_level level = 0; level <= base_cpu_best(); level++) {
        uint64_t alone;

        omp_set_num_threads(1);
        alone = checked(nn_simd_of(level));
        for (int threads = 2; threads <= 3; threads++) {
            omp_set_num_threads(threads);
            assert_true(checked(nn_simd_of(level)) == alone);
        }
    }
}

static void test_dense(void **unused)
{
    (void)unused;
    every_level(dense);
}

static void test_batchnorm(void **unused)
{
    (void)unused;
    every_level(batchnorm);
}

static void test_elementwise(void **unused)
{
    (void)unused;
    every_level(elementwise);
}

static void test_dropout(void **unused)
{
    (void)unused;
    every_level(dropout);
}

static void test_pool(void **unused)
{
    (void)unused;
    every_level(pool);
}

/* main asked for the portable level before anything asked for kernels. */
static void test_level_is_chosen_by_name(void **unused)
{
    (void)unused;
    assert_int_equal(base_cpu_level(), BASE_CPU_portable);
    assert_ptr_equal(nn_simd(), nn_simd_of(BASE_CPU_portable));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_level_is_chosen_by_name),
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_batchnorm),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_elementwise),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_pool),
    };

    setenv("PACELINE_CPU", "portable", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
