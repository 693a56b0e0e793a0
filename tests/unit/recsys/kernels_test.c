/* SPDX-License-Identifier: MIT
 *
 * Every level of the rating models' kernels against plain loops in double precision.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "recsys/kernels/kernels.h"

#define for_each_level(r)                                                  \
    for (enum base_cpu_level level = 0; level <= base_cpu_best(); level++) \
        for (const struct recsys_kernels *r = recsys_kernels_of(level); r != NULL; r = NULL)

static const int sizes[] = {8, 16, 24, 32, 40, 64, 128};
enum { SIZES = sizeof sizes / sizeof *sizes, MOST = RECSYS_MAX_K };

/* Values in (-1, 1) that depend on `what` alone. */
static float *fill(uint32_t what, size_t count)
{
    const struct base_rng rng = base_rng_of(1, BASE_STREAM_TEST, what, 0, 0);
    float *x = NULL;

    assert_int_equal(base_tensor(count, sizeof *x, "a test's values", &x), BASE_OK);
    for (size_t i = 0; i < count; i++)
        x[i] = 2 * base_rng_unit(base_rng_u32(&rng, (uint32_t)i)) - 1;
    return x;
}

static void assert_near(double got, double wanted, double bound)
{
    if (!(fabs(got - wanted) <= bound * (1 + fabs(wanted))))
        fail_msg("got %.9g instead of %.9g", got, wanted);
}

static void one_syrk(const struct recsys_kernels *r, int k, int n)
{
    const uint32_t index[] = {0, 1};
    const struct recsys_ahead next = {.rows = NULL, .index = index, .count = 0};
    float *panel = fill(1, (size_t)(n * k)), *triangle = fill(2, recsys_triangle_floats(k));
    float *before = fill(2, recsys_triangle_floats(k));
    const struct recsys_ahead own = {.rows = panel, .index = index, .count = n > 1 ? 2 : 0};

    r->syrk(k, panel, n, triangle, n % 2 ? &own : &next);
    for (int i = 0; i < k; i++)
        for (int j = i; j < k; j++) {
            const size_t at = recsys_triangle_at(k, i, j);
            double sum = (double)before[at];

            for (int p = 0; p < n; p++)
                sum += (double)panel[p * k + i] * (double)panel[p * k + j];
            assert_near((double)triangle[at], sum, 1e-5);
        }
    base_free(panel);
    base_free(triangle);
    base_free(before);
}

static void test_syrk(void **state)
{
    (void)state;
    for_each_level(r) for (int s = 0; s < SIZES; s++) for (int n = 0; n <= recsys_panel(sizes[s]);
                                                           n += 1 + n / 2) one_syrk(r, sizes[s], n);
}

/* What a row sees of a rating, column by column. */
static double seen(const struct recsys_pack *p, int j, int f, double *explained)
{
    const float *x = p->rows + p->index[j] * (uint32_t)p->k;
    const float *d = p->more != NULL ? p->more + p->more_index[j] * (uint32_t)p->k : NULL;

    *explained = (double)x[p->other_own] + (d != NULL ? (double)d[p->k - 1] : 0);
    for (int i = 0; i < p->k - 2 && d != NULL; i++)
        *explained += (double)x[i] * (double)d[i];
    if (f >= p->k - 2)
        return f == p->own;
    return (double)x[f] + (d != NULL ? (double)d[f] : 0);
}

static void one_pack(const struct recsys_kernels *r, int k, bool third, bool weighted)
{
    enum { N = 11, ROWS = 5 };
    static const uint32_t index[N] = {4, 0, 1, 2, 3, 4, 1, 0, 2, 2, 3}, more[N] = {1, 0, 2};
    float *rows = fill(1, (size_t)(ROWS * k)), *days = fill(2, (size_t)(ROWS * k));
    float *panel = fill(3, (size_t)(N * k)), *y = fill(4, N), *was = fill(4, N);
    float *weight = fill(5, N), *sum = fill(6, (size_t)k), *sum_was = fill(6, (size_t)k);
    const struct recsys_pack p = {.k = k,
                                  .n = N,
                                  .own = third ? k - 1 : k - 2,
                                  .other_own = third ? k - 2 : k - 1,
                                  .rows = rows,
                                  .index = index,
                                  .more = third ? days : NULL,
                                  .more_index = more,
                                  .weight = weighted ? weight : NULL};
    double squares = 0, got, explained = 0;

    r->pack(&p, panel, y);
    got = r->project(k, panel, y, N, sum);
    for (int j = 0; j < N; j++) {
        const double w = weighted ? (double)weight[j] : 1;

        for (int f = 0; f < k; f++)
            assert_near((double)panel[j * k + f], w * seen(&p, j, f, &explained), 1e-6);
        assert_near((double)y[j], w * ((double)was[j] - explained), 1e-5);
        squares += (double)y[j] * (double)y[j];
    }
    assert_near(got, squares, 1e-6);
    for (int f = 0; f < k; f++) {
        double s = (double)sum_was[f];

        for (int j = 0; j < N; j++)
            s += (double)panel[j * k + f] * (double)y[j];
        assert_near((double)sum[f], s, 1e-5);
    }
    for (float **m = (float *[]){rows, days, panel, y, was, weight, sum, sum_was, NULL}; *m; m++)
        base_free(*m);
}

static void test_pack(void **state)
{
    (void)state;
    for_each_level(r) for (int s = 0; s < SIZES; s++) for (int how = 0; how < 4; how++)
        one_pack(r, sizes[s], how & 1, how & 2);
}

/* ---- eight systems ---- */

/* A positive definite matrix as a triangle. */
static void make_system(const struct recsys_kernels *r, int k, int which, float *triangle)
{
    float *panel = fill(10 + (uint32_t)which, (size_t)(16 * k));

    r->syrk(k, panel, 16, triangle, NULL);
    base_free(panel);
}

static double element(int k, const float *triangle, const float *prior, double scale, int i, int j)
{
    const int a = i < j ? i : j, b = i < j ? j : i;

    return (double)prior[a * k + b] + scale * (double)triangle[recsys_triangle_at(k, a, b)];
}

/* Ax = b where x solves it; with noise, A x = b + L noise. */
static void one_solve(const struct recsys_kernels *r, int k, bool noisy)
{
    const size_t size = recsys_triangle_floats(k);
    float *triangles = NULL, *lower = NULL, *prior = fill(3, (size_t)(k * k));
    float *x = fill(4, (size_t)(8 * k)), *b = fill(4, (size_t)(8 * k));
    float *noise = fill(5, (size_t)(8 * k)), *scale = fill(6, 8), *factor = NULL;

    assert_int_equal(base_tensor(8 * size, 4, "", &triangles), BASE_OK);
    assert_int_equal(base_tensor(recsys_lower_floats(k), 4, "", &lower), BASE_OK);
    for (int l = 0; l < 8; l++) {
        make_system(r, k, l, triangles + (size_t)l * size);
        scale[l] = 1 + 0.5f * scale[l];
    }
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++)
            prior[i * k + j] = i == j ? 3.0f : 0.01f;
    r->lanes_gather(k, triangles, prior, scale, lower);
    r->lanes_cholesky(k, lower);
    r->lanes_solve(k, lower, x, noisy ? noise : NULL);
    factor = lower;
    for (int l = 0; l < 8; l++)
        for (int i = 0; i < k; i++) {
            double sum = 0, wanted = (double)b[8 * i + l];

            for (int j = 0; j < k; j++)
                sum += element(k, triangles + (size_t)l * size, prior, (double)scale[l], i, j) *
                       (double)x[8 * j + l];
            for (int j = 0; j <= i && noisy; j++) {
                const double at = (double)factor[(i * (i + 1) / 2 + j) * 8 + l];

                wanted += (i == j ? 1 / at : at) * (double)noise[8 * j + l];
            }
            assert_near(sum, wanted, 2e-4);
        }
    for (float **m = (float *[]){triangles, lower, prior, x, b, noise, scale, NULL}; *m; m++)
        base_free(*m);
}

static void test_lanes(void **state)
{
    (void)state;
    for_each_level(r) for (int s = 0; s < SIZES; s++)
    {
        one_solve(r, sizes[s], false);
        one_solve(r, sizes[s], true);
    }
}

static void test_products(void **state)
{
    (void)state;
    for_each_level(r) for (int s = 0; s < SIZES; s++)
    {
        const int k = sizes[s];
        float *t = fill(1, recsys_triangle_floats(k)), *x = fill(2, (size_t)k);
        float *y = fill(3, (size_t)k);
        double quadratic = 0, dot = 0;

        for (int i = 0; i < k; i += 8) /* tiles on the diagonal are symmetric */
            for (int a = 0; a < 8; a++)
                for (int b = 0; b < a; b++)
                    t[recsys_triangle_at(k, i, i) + (size_t)(8 * a + b)] =
                        t[recsys_triangle_at(k, i, i) + (size_t)(8 * b + a)];
        for (int i = 0; i < k; i++) {
            for (int j = 0; j < k; j++)
                quadratic += (double)x[i] * (double)x[j] *
                             (double)t[recsys_triangle_at(k, i < j ? i : j, i < j ? j : i)];
            dot += (double)x[i] * (double)y[i];
        }
        assert_near((double)r->quadratic(k, t, x), quadratic, 1e-4);
        assert_near((double)r->dot(k, x, y), dot, 1e-5);
        base_free(t);
        base_free(x);
        base_free(y);
    }
}

/* ---- random ---- */

static void test_normals(void **state)
{
    enum { COUNT = 1 << 14 };
    static uint32_t words[COUNT];
    static float z[COUNT];
    const struct base_rng rng = base_rng_of(1, BASE_STREAM_TEST, 0, 0, 0);

    (void)state;
    for (uint32_t i = 0; i < COUNT; i++)
        words[i] = base_rng_u32(&rng, i);
    words[0] = 0; /* the corners */
    words[1] = UINT32_MAX;
    words[COUNT / 2 + 1] = UINT32_MAX;
    for_each_level(r)
    {
        double sum = 0, squares = 0, fourth = 0;

        r->normals(COUNT, words, z);
        for (int i = 0; i < COUNT; i++) {
            const int pair = i % (COUNT / 2);
            const double u = ((words[pair] >> 9) + 0.5) * 0x1p-23;
            const double turn = (words[COUNT / 2 + pair] >> 8) * 0x1p-24 - 0.5;
            const double angle = 2 * M_PI * turn, radius = sqrt(-2 * log(u));

            /* A radius near zero is the square root of a small difference. */
            assert_near((double)z[i], radius * (i < COUNT / 2 ? cos(angle) : sin(angle)),
                        u > 0.999 ? 1e-3 : 5e-6);
            sum += (double)z[i];
            squares += (double)z[i] * (double)z[i];
            fourth += pow((double)z[i], 4);
        }
        assert_near(sum / COUNT, 0, 0.03);
        assert_near(squares / COUNT, 1, 0.03);
        assert_near(fourth / COUNT, 3, 0.05);
    }
}

/* ---- implicit models ---- */

static void one_weigh(const struct recsys_kernels *r, int k, bool residual)
{
    enum { N = 12 };
    float *panel = fill(1, (size_t)(N * k)), *w = fill(2, N), *c = fill(3, N);
    float *v = fill(4, (size_t)k), *out = fill(5, (size_t)k), *was = fill(5, (size_t)k);

    r->weigh(k, panel, N, w, residual ? c : NULL, v, out);
    for (int f = 0; f < k; f++) {
        double sum = (double)was[f];

        for (int j = 0; j < N; j++) {
            double dot = 0;

            for (int i = 0; i < k; i++)
                dot += (double)panel[j * k + i] * (double)v[i];
            dot *= (double)w[j];
            sum += (residual ? (double)c[j] - dot : dot) * (double)panel[j * k + f];
        }
        assert_near((double)out[f], sum, 1e-4);
    }
    for (float **m = (float *[]){panel, w, c, v, out, was, NULL}; *m; m++)
        base_free(*m);
}

static void test_weigh(void **state)
{
    (void)state;
    for_each_level(r) for (int s = 0; s < SIZES; s++)
    {
        one_weigh(r, sizes[s], false);
        one_weigh(r, sizes[s], true);
    }
}

static void test_gather(void **state)
{
    enum { ROWS = 50, COUNT = 37 };

    (void)state;
    for_each_level(r) for (int s = 0; s < SIZES; s++)
    {
        const int k = sizes[s];
        float *rows = fill(1, (size_t)(ROWS * k)), *panel = fill(2, (size_t)(COUNT * k));
        uint32_t index[COUNT];

        for (uint32_t j = 0; j < COUNT; j++)
            index[j] = j * 13 % ROWS;
        r->gather(k, rows, index, COUNT, panel);
        for (uint32_t j = 0; j < COUNT; j++)
            assert_memory_equal(panel + j * (uint32_t)k, rows + index[j] * (uint32_t)k,
                                (size_t)k * sizeof *rows);
        base_free(rows);
        base_free(panel);
    }
}

static void test_site(void **state)
{
    enum { ROWS = 40, COUNT = 30 };

    (void)state;
    for_each_level(r)
    {
        uint32_t index[COUNT];
        float *rest = fill(1, ROWS * 8), *was = fill(1, ROWS * 8), *share = fill(2, ROWS);
        float *y = fill(3, 8), *before = fill(3, 8), *noise = fill(4, 8);
        double c2 = 0;

        for (uint32_t e = 0; e < COUNT; e++)
            index[e] = (e * 7) % ROWS;
        for (int e = 0; e < COUNT; e++)
            c2 += (double)share[index[e]] * (double)share[index[e]];
        r->site(index, COUNT, share, 0.5f, noise, rest, y);
        for (int f = 0; f < 8; f++) {
            double s = c2 * (double)before[f], drawn;

            for (int e = 0; e < COUNT; e++)
                s += (double)share[index[e]] * (double)was[index[e] * 8 + (uint32_t)f];
            drawn = s / (c2 + 0.5) + (double)noise[f] / sqrt(c2 + 0.5);
            assert_near((double)y[f], drawn, 1e-5);
            for (int e = 0; e < COUNT; e++)
                assert_near((double)rest[index[e] * 8 + (uint32_t)f],
                            (double)was[index[e] * 8 + (uint32_t)f] +
                                (double)share[index[e]] * ((double)before[f] - drawn),
                            1e-5);
        }
        for (float **m = (float *[]){rest, was, share, y, before, noise, NULL}; *m; m++)
            base_free(*m);
    }
}

/* ---- gradient steps ---- */

enum { USERS = 3, ITEMS = 20, RUNS = 3, RATINGS = 32 };

/* Eight ratings at a time see the same user's row, as the kernel does it. */
static void plain_sgd(const struct recsys_sgd *s, const struct recsys_cell *cell, double *p,
                      double *q)
{
    const int k = s->k;
    int at = 0;

    for (uint32_t r = 0; r < cell->run_count; r++) {
        double *u = p + cell->runs[r].user * (uint32_t)k;
        const uint32_t n = cell->runs[r].count;

        for (int f = 0; f < k; f++)
            u[f] *= (double)(f == k - 1 ? s->bias_decay[n] : f == k - 2 ? 1 : s->decay[n]);
        for (uint32_t b = 0; b < n; b += 8, at += 8) {
            double was[MOST];

            memcpy(was, u, (size_t)k * sizeof *was);
            for (int j = 0; j < 8; j++) {
                double *i = q + cell->item[at + j] * k;
                double e = (double)cell->code[at + j] * (double)s->scale + (double)s->offset;

                if (cell->code[at + j] == 0)
                    continue;
                for (int f = 0; f < k; f++)
                    e -= was[f] * i[f];
                e = (double)s->rate * (s->absolute ? (e < 0 ? -1 : 1) : e);
                for (int f = 0; f < k; f++) {
                    const double old = i[f];

                    i[f] += f == k - 1 ? 0 : e * was[f];
                    u[f] += f == k - 2 ? 0 : e * old;
                }
            }
        }
    }
}

static void one_sgd(const struct recsys_kernels *r, int k, bool absolute)
{
    static const struct recsys_run runs[RUNS] = {{2, 8}, {0, 3}, {1, 13}};
    static const float decay[16] = {[3] = 0.9f, [8] = 0.8f, [13] = 0.7f};
    static const float bias_decay[16] = {[3] = 0.95f, [8] = 0.85f, [13] = 0.75f};
    uint16_t item[RATINGS + 32] = {0};
    uint8_t code[RATINGS] = {0};
    float *users = fill(1, (size_t)(USERS * k)), *items = fill(2, (size_t)((ITEMS + 1) * k));
    double p[USERS * MOST], q[(ITEMS + 1) * MOST];
    const struct recsys_sgd s = {k, 0.05f, 0.5f, -2.0f, absolute, decay, bias_decay, users, items};
    const struct recsys_cell cell = {runs, item, code, RUNS};

    for (int run = 0, at = 0; run < RUNS; run++)
        for (int j = 0; j < ((int)runs[run].count + 7) / 8 * 8; j++, at++) {
            const bool real = j < (int)runs[run].count;

            item[at] = (uint16_t)(real ? (at * 7 + run) % ITEMS : ITEMS);
            code[at] = (uint8_t)(real ? 1 + at % 5 : 0);
        }
    for (int f = 0; f < k; f++)
        items[ITEMS * k + f] = 0;
    for (int u = 0; u < USERS; u++)
        users[u * k + k - 2] = 1;
    for (int i = 0; i < ITEMS; i++)
        items[i * k + k - 1] = 1;
    for (int i = 0; i < USERS * k; i++)
        p[i] = (double)users[i];
    for (int i = 0; i < (ITEMS + 1) * k; i++)
        q[i] = (double)items[i];
    r->sgd(&s, &cell);
    plain_sgd(&s, &cell, p, q);
    for (int i = 0; i < USERS * k; i++)
        assert_near((double)users[i], p[i], 1e-4);
    for (int i = 0; i < (ITEMS + 1) * k; i++)
        assert_near((double)items[i], q[i], 1e-4);
    base_free(users);
    base_free(items);
}

static void test_sgd(void **state)
{
    (void)state;
    for_each_level(r) for (int s = 0; s < SIZES; s++)
    {
        one_sgd(r, sizes[s], false);
        one_sgd(r, sizes[s], true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_syrk),    cmocka_unit_test(test_pack),
        cmocka_unit_test(test_lanes),   cmocka_unit_test(test_products),
        cmocka_unit_test(test_normals), cmocka_unit_test(test_weigh),
        cmocka_unit_test(test_site),    cmocka_unit_test(test_gather),
        cmocka_unit_test(test_sgd),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
