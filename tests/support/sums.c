/* SPDX-License-Identifier: MIT */
#include "support/sums.h"

#include <math.h>
#include <string.h>

float sums_value(int rank, size_t index)
{
    uint64_t x = ((uint64_t)rank << 40) + index + 1;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return (float)((x ^ x >> 31) >> 40) * 0x1p-23f - 1.0f;
}

void sums_fill(int rank, size_t count, float *x)
{
    for (size_t i = 0; i < count; i++)
        x[i] = sums_value(rank, i);
}

static float in_ranks(int n, const float *v)
{
    float sum = v[0];

    for (int i = 1; i < n; i++)
        sum += v[i];
    return sum;
}

static float in_ring(int n, const float *v, int slice)
{
    float sum = v[(slice + 1) % n];

    for (int i = 2; i <= n; i++)
        sum += v[(slice + i) % n];
    return sum;
}

static float in_tree(int n, const float *v)
{
    float sum[COMM_MAX_WORKERS];
    int power = 1;

    while (2 * power <= n)
        power *= 2;
    for (int i = 0; i < power; i++)
        sum[i] = v[i] + (i + power < n ? v[i + power] : 0.0f);
    for (int half = power / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            sum[i] += sum[i + half];
    return sum[0];
}

static float in_hosts(int n, const float *v, const struct comm_member *members)
{
    float host[COMM_MAX_WORKERS] = {0};
    int hosts = 0;

    for (int i = 0; i < n; i++) { /* ranks of a host need not stand together */
        bool first = true;

        for (int j = 0; j < i; j++)
            first &= members[j].host != members[i].host;
        if (!first)
            continue;
        host[hosts] = v[i];
        for (int j = i + 1; j < n; j++)
            if (members[j].host == members[i].host)
                host[hosts] += v[j];
        hosts++;
    }
    return in_ranks(hosts, host);
}

void sums_reference(enum coll_order order, const struct comm_view *view, size_t count,
                    const float *scale, float *y)
{
    int n = (int)view->size, slice = 0;
    size_t from, length, end = 0;

    coll_slice(count, 0, n, &from, &end);
    for (size_t i = 0; i < count; i++) {
        float v[COMM_MAX_WORKERS];

        for (int r = 0; r < n; r++)
            v[r] = (scale ? scale[r] : 1.0f) * sums_value(r, i);
        while (i >= end) {
            coll_slice(count, ++slice, n, &from, &length);
            end = from + length;
        }
        switch (order) {
        case COLL_ORDER_RING:
            y[i] = in_ring(n, v, slice);
            break;
        case COLL_ORDER_TREE:
            y[i] = in_tree(n, v);
            break;
        case COLL_ORDER_HOSTS:
            y[i] = in_hosts(n, v, view->members);
            break;
        default:
            y[i] = in_ranks(n, v);
            break;
        }
    }
}

bool sums_same(size_t count, const float *a, const float *b)
{
    return memcmp(a, b, count * sizeof *a) == 0;
}

float sums_distance(size_t count, const float *a, const float *b)
{
    float most = 0;

    for (size_t i = 0; i < count; i++)
        most = fmaxf(most, fabsf(a[i] - b[i]));
    return most;
}
