/* SPDX-License-Identifier: MIT */
#include "recsys/gauss.h"

#include <math.h>

#include "recsys/kernels/kernels.h"

bool recsys_cholesky(double *a, int d)
{
    for (int j = 0; j < d; j++)
        for (int i = j; i < d; i++) {
            double s = a[i * d + j];

            for (int p = 0; p < j; p++)
                s -= a[i * d + p] * a[j * d + p];
            if (i > j)
                a[i * d + j] = s / a[j * d + j];
            else if (s > 0)
                a[i * d + i] = sqrt(s);
            else
                return false;
        }
    return true;
}

void recsys_forward(const double *factor, int d, double *x)
{
    for (int i = 0; i < d; i++) {
        for (int p = 0; p < i; p++)
            x[i] -= factor[i * d + p] * x[p];
        x[i] /= factor[i * d + i];
    }
}

void recsys_backward(const double *factor, int d, double *x)
{
    for (int i = d - 1; i >= 0; i--) {
        for (int p = i + 1; p < d; p++)
            x[i] -= factor[p * d + i] * x[p];
        x[i] /= factor[i * d + i];
    }
}

void recsys_solve(const double *factor, int d, double *x)
{
    recsys_forward(factor, d, x);
    recsys_backward(factor, d, x);
}

void recsys_add_equation(double *a, double *b, int d, const double *x, double weight, double target)
{
    for (int i = 0; i < d; i++) {
        b[i] += target * x[i];
        for (int j = 0; j <= i; j++)
            a[i * d + j] += weight * x[i] * x[j];
    }
}

double recsys_product(const double *a, const double *b, int d)
{
    double sum = 0;

    for (int i = 0; i < d; i++)
        sum += a[i] * b[i];
    return sum;
}

struct recsys_draws recsys_draws_of(uint64_t seed, uint32_t what, uint32_t sweep, uint32_t row)
{
    return (struct recsys_draws){base_rng_of(seed, BASE_STREAM_SAMPLE, what, sweep, row), 0};
}

double recsys_draw_unit(struct recsys_draws *draws)
{
    uint32_t words[4];

    base_rng_block(&draws->rng, draws->at++, words);
    return ((double)((uint64_t)words[0] << 20 | words[1] >> 12) + 0.5) * 0x1p-52;
}

double recsys_draw_normal(struct recsys_draws *draws)
{
    const double a = recsys_draw_unit(draws), b = recsys_draw_unit(draws);

    return sqrt(-2 * log(a)) * cos(2 * M_PI * b);
}

/* Marsaglia and Tsang (2000). */
double recsys_draw_gamma(struct recsys_draws *draws, double shape)
{
    const bool small = shape < 1;
    const double d = (small ? shape + 1 : shape) - 1.0 / 3, c = 1 / sqrt(9 * d);
    const double boost = small ? pow(recsys_draw_unit(draws), 1 / shape) : 1;

    for (;;) {
        const double x = recsys_draw_normal(draws);
        double v = 1 + c * x;

        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(recsys_draw_unit(draws)) < 0.5 * x * x + d - d * v + d * log(v))
            return d * v * boost;
    }
}

double recsys_phi(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

/* Acklam's rational approximations; relative error below 1.2e-9. */
double recsys_phi_inverse(double p)
{
    static const double a[] = {-39.69683028665376, 220.9460984245205,  -275.9285104469687,
                               138.3577518672690,  -30.66479806614716, 2.506628277459239};
    static const double b[] = {-54.47609879822406, 161.5858368580409, -155.6989798598866,
                               66.80131188771972, -13.28068155288572};
    static const double c[] = {-.007784894002430293, -.3223964580411365, -2.400758277161838,
                               -2.549732539343734,   4.374664141464968,  2.938163982698783};
    static const double d[] = {.007784695709041462, .3224671290700398, 2.445134137142996,
                               3.754408661907416};
    const double tail = 0.02425;

    if (p > 1 - tail)
        return -recsys_phi_inverse(1 - p);
    if (p < tail) {
        const double q = sqrt(-2 * log(p));

        return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
               ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
    }
    const double q = p - 0.5, r = q * q;

    return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
           (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

void recsys_row_normals(uint64_t seed, uint32_t what, uint32_t sweep, uint32_t row, int count,
                        float *z)
{
    const struct base_rng rng = base_rng_of(seed, BASE_STREAM_SAMPLE, what, sweep, row);
    const int whole = (count + 15) / 16 * 16;
    uint32_t words[RECSYS_MAX_K];

    for (int b = 0; b < whole / 4; b++)
        base_rng_block(&rng, (uint32_t)b, words + 4 * b);
    recsys_kernels()->normals(whole, words, z);
}
