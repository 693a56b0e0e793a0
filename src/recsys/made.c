/* SPDX-License-Identifier: MIT
 *
 * Which ratings there are: every number is a mix of the seed and of what it is for, so a user's
 * ratings can be made by any thread at any time.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "recsys/make_private.h"

static const double MEAN = 3.6, USER_BIAS = 0.42, ITEM_BIAS = 0.45, NOISE = 0.78;
static const double USER_FACTOR = 0.33, ITEM_FACTOR = 0.55; /* of the first; later ones less */
static const double DILIGENCE = 1.25; /* deviation of the logarithm of a user's ratings */
enum { DAY = 86400, FIRST_DAY = 10906, DAYS = 2240 }; /* 1999-11-11, and as long as Netflix' */

enum purpose { DEGREE = 1, FACTOR_OF_USER, FACTOR_OF_ITEM, PLACE, PICK, SHOW, RATE, SINCE, WHEN };

static uint64_t random_of(const struct recsys_maker *m, enum purpose purpose, uint64_t a,
                          uint64_t b)
{
    uint64_t x = base_rng_mix(m->seed + 0x9e3779b97f4a7c15 * (uint64_t)purpose);

    return base_rng_mix(base_rng_mix(x ^ (a * 0xd1342543de82ef95)) + b * 0x9e3779b97f4a7c15);
}

/* About normal, of deviation 1: the sum of four numbers of 16 bits (Irwin–Hall). */
static float gauss(uint64_t x)
{
    int32_t sum = (int32_t)((x & 0xffff) + ((x >> 16) & 0xffff) + ((x >> 32) & 0xffff) + (x >> 48));

    return (float)(sum - 2 * 65535) * (1.7320508f / 65536);
}

static float factor_scale(int f)
{
    return powf((float)(f + 1), -0.35f);
}

/* ---- before ---- */

/* Numbers of ratings that add up to what was asked for; a user rates at most all items. */
static base_status deal_ratings(struct recsys_maker *m, uint64_t ratings)
{
    base_status st = BASE_OK;
    double *weight = NULL, sum = 0;
    uint64_t total = 0;

    TRY(base_tensor(m->users, sizeof *weight, "users", &weight));
    TRY(base_tensor((size_t)m->users + 1, sizeof *m->start, "users", &m->start));
    for (uint32_t u = 0; u < m->users; u++)
        sum += weight[u] = exp(DILIGENCE * (double)gauss(random_of(m, DEGREE, u, 0)));
    for (uint32_t u = 0; u < m->users; u++) {
        uint64_t count = (uint64_t)(weight[u] * (double)ratings / sum);

        m->start[u + 1] = count < m->items ? count : m->items;
        total += m->start[u + 1];
    }
    for (uint32_t u = 0; total < ratings; u = u + 1 < m->users ? u + 1 : 0)
        if (m->start[u + 1] < m->items) {
            m->start[u + 1]++;
            total++;
        }
    for (uint32_t u = 0; u < m->users; u++)
        m->start[u + 1] += m->start[u];
out:
    base_free(weight);
    return st;
}

/* Vose's way of filling the tables of the alias method. */
static base_status weigh_items(struct recsys_maker *m)
{
    base_status st = BASE_OK;
    double *weight = NULL, sum = 0;
    uint32_t *stack = NULL, small = 0, large = m->items; /* from both ends */

    TRY(base_tensor(m->items, sizeof *weight, "items", &weight));
    TRY(base_tensor(m->items, sizeof *stack, "items", &stack));
    for (uint32_t i = 0; i < m->items; i++)
        sum += weight[i] = pow(i + 1 + m->items / 60.0, -1.5);
    for (uint32_t i = 0; i < m->items; i++) {
        weight[i] *= m->items / sum;
        stack[weight[i] < 1 ? small++ : --large] = i;
    }
    while (small > 0 && large < m->items) {
        uint32_t a = stack[--small], b = stack[large++];

        m->keep[a] = (float)weight[a];
        m->other[a] = b;
        weight[b] -= 1 - weight[a];
        stack[weight[b] < 1 ? small++ : --large] = b;
    }
    while (small > 0)
        m->keep[stack[--small]] = 1;
    for (; large < m->items; large++)
        m->keep[stack[large]] = 1;
out:
    base_free(weight);
    base_free(stack);
    return st;
}

static void describe_items(struct recsys_maker *m)
{
    for (uint32_t i = 0; i < m->items; i++) {
        float *f = m->factors + (size_t)i * (RECSYS_MAKE_RANK + 1);
        uint32_t swap = (uint32_t)(random_of(m, PLACE, i, 0) % (i + 1));

        m->item[i] = m->item[swap];
        m->item[swap] = i;
        for (int k = 0; k < RECSYS_MAKE_RANK; k++)
            f[k] = (float)ITEM_FACTOR * factor_scale(k) *
                   gauss(random_of(m, FACTOR_OF_ITEM, i, (uint64_t)k));
        f[RECSYS_MAKE_RANK] =
            (float)ITEM_BIAS * gauss(random_of(m, FACTOR_OF_ITEM, i, RECSYS_MAKE_RANK));
    }
}

base_status recsys_maker_init(const struct recsys_make *make, struct recsys_maker *m)
{
    base_status st = BASE_OK;

    *m = (struct recsys_maker){.users = (uint32_t)make->users,
                               .items = (uint32_t)make->items,
                               .seed = make->seed,
                               .half_stars = make->half_stars};
    TRY(base_tensor(m->items, sizeof *m->keep, "items", &m->keep));
    TRY(base_tensor(m->items, sizeof *m->other, "items", &m->other));
    TRY(base_tensor(m->items, sizeof *m->item, "items", &m->item));
    TRY(base_tensor(m->items, (RECSYS_MAKE_RANK + 1) * sizeof *m->factors, "factors of items",
                    &m->factors));
    TRY(deal_ratings(m, (uint64_t)make->ratings));
    TRY(weigh_items(m));
    describe_items(m);
out:
    return st;
}

void recsys_maker_fini(struct recsys_maker *m)
{
    base_free(m->start);
    base_free(m->keep);
    base_free(m->other);
    base_free(m->item);
    base_free(m->factors);
    *m = (struct recsys_maker){0};
}

base_status recsys_made_init(const struct recsys_maker *m, struct recsys_made *made)
{
    base_status st = BASE_OK;

    *made = (struct recsys_made){0};
    TRY(base_tensor(m->items / 64 + 1, sizeof *made->seen, "items", &made->seen));
    TRY(base_tensor(m->items, sizeof *made->items, "items", &made->items));
    TRY(base_tensor(m->items, sizeof *made->halves, "items", &made->halves));
    TRY(base_tensor(m->items, sizeof *made->times, "items", &made->times));
out:
    return st;
}

void recsys_made_fini(struct recsys_made *made)
{
    base_free(made->seen);
    base_free(made->items);
    base_free(made->halves);
    base_free(made->times);
    *made = (struct recsys_made){0};
}

/* ---- a user ---- */

static bool mark(uint64_t *seen, uint32_t item)
{
    uint64_t bit = (uint64_t)1 << (item % 64), before = seen[item / 64];

    seen[item / 64] = before | bit;
    return (before & bit) == 0;
}

/* By popularity, until there are enough; a user of very many items takes the rest in turn. */
static void pick_items(const struct recsys_maker *m, uint32_t user, uint32_t count,
                       struct recsys_made *made)
{
    uint64_t tries = 8 * (uint64_t)count + 64;
    uint32_t found = 0;

    for (uint64_t t = 0; found < count && t < tries; t++) {
        uint64_t x = random_of(m, PICK, user, t);
        uint32_t place = (uint32_t)(((x >> 32) * m->items) >> 32);
        uint32_t rank = base_rng_unit((uint32_t)x) < m->keep[place] ? place : m->other[place];

        if (mark(made->seen, m->item[rank]))
            made->items[found++] = m->item[rank];
    }
    for (uint32_t rank = 0; found < count; rank++)
        if (mark(made->seen, m->item[rank]))
            made->items[found++] = m->item[rank];
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* In order of items, by going through the bits where that is quicker than sorting. */
static void order_items(const struct recsys_maker *m, struct recsys_made *made)
{
    uint32_t words = m->items / 64 + 1, found = 0;

    if (words > 16 * made->count) {
        for (uint32_t i = 0; i < made->count; i++)
            made->seen[made->items[i] / 64] = 0;
        qsort(made->items, made->count, sizeof *made->items, by_number);
        return;
    }
    for (uint32_t w = 0; w < words; w++) {
        for (uint64_t bits = made->seen[w]; bits != 0; bits &= bits - 1)
            made->items[found++] = 64 * w + (uint32_t)__builtin_ctzll(bits);
        made->seen[w] = 0;
    }
}

static uint8_t rate(const struct recsys_maker *m, uint32_t user, const float *taste, uint32_t item)
{
    const float *f = m->factors + (size_t)item * (RECSYS_MAKE_RANK + 1);
    float z = taste[RECSYS_MAKE_RANK] + f[RECSYS_MAKE_RANK] +
              (float)NOISE * gauss(random_of(m, RATE, user, item));
    int halves;

    for (int k = 0; k < RECSYS_MAKE_RANK; k++)
        z += taste[k] * f[k];
    halves = m->half_stars ? (int)lrintf(2 * z) : 2 * (int)lrintf(z);
    if (halves < (m->half_stars ? 1 : 2))
        halves = m->half_stars ? 1 : 2;
    return (uint8_t)(halves < 10 ? halves : 10);
}

void recsys_make_user(const struct recsys_maker *m, uint32_t user, struct recsys_made *made)
{
    float taste[RECSYS_MAKE_RANK + 1];
    uint64_t first = random_of(m, SINCE, user, 0) % DAYS, days;

    made->count = (uint32_t)(m->start[user + 1] - m->start[user]);
    days = 1 + random_of(m, SINCE, user, 1) % (DAYS - first); /* that the user is active */
    for (int k = 0; k < RECSYS_MAKE_RANK; k++)
        taste[k] = (float)USER_FACTOR * factor_scale(k) *
                   gauss(random_of(m, FACTOR_OF_USER, user, (uint64_t)k));
    taste[RECSYS_MAKE_RANK] =
        (float)MEAN +
        (float)USER_BIAS * gauss(random_of(m, FACTOR_OF_USER, user, RECSYS_MAKE_RANK));
    pick_items(m, user, made->count, made);
    order_items(m, made);
    for (uint32_t i = 0; i < made->count; i++) {
        made->halves[i] = rate(m, user, taste, made->items[i]);
        made->times[i] = (uint32_t)((FIRST_DAY + first) * DAY +
                                    random_of(m, WHEN, user, made->items[i]) % (days * DAY));
    }
}
