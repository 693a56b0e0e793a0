/* SPDX-License-Identifier: MIT
 *
 * The bias models against plain double precision, and against each other: gradient descent reaches
 * the minimum that alternating solves find.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/mem.h"
#include "recsys/bias.h"
#include "support/rated.h"

enum { USERS = 200, ITEMS = 80, EACH = 20 };

static struct rated rated;

struct plain {
    double mean, user[USERS], item[ITEMS];
};

static double value_at(uint64_t k)
{
    return (double)recsys_value(&rated.scale, &rated.by_user, k);
}

/* The biases of one side, given the other's. */
static void plain_solve(struct plain *p, bool users, double damping)
{
    double sum[USERS] = {0}, count[USERS] = {0};

    for (uint32_t u = 0; u < USERS; u++)
        for (uint64_t k = rated.by_user.start[u]; k < rated.by_user.start[u + 1]; k++) {
            const uint32_t i = rated.by_user.column[k], row = users ? u : i;

            sum[row] += value_at(k) - p->mean - (users ? p->item[i] : p->user[u]);
            count[row]++;
        }
    for (uint32_t r = 0; r < (users ? USERS : ITEMS); r++)
        *(users ? &p->user[r] : &p->item[r]) = sum[r] / (count[r] + damping);
}

static struct plain plain_of(int sweeps, double user_damping, double item_damping)
{
    struct plain p = {0};

    for (uint64_t k = 0; k < rated.by_user.count; k++)
        p.mean += value_at(k) / (double)rated.by_user.count;
    for (int s = 0; s < sweeps; s++) {
        plain_solve(&p, false, item_damping);
        plain_solve(&p, true, user_damping);
    }
    return p;
}

static void compare(const char *model, const struct plain *p, double bound)
{
    struct recsys_setup setup = {
        .scale = &rated.scale, .by_user = &rated.by_user, .by_item = &rated.by_item, .seed = 1};
    struct recsys_fit *fit;
    struct base_team *team;
    void *options;

    assert_int_equal(base_team_new(2, &team), BASE_OK);
    assert_int_equal(recsys_model_find(model, &setup.model, &options), BASE_OK);
    setup.options = options;
    setup.team = team;
    assert_int_equal(recsys_fit_new(&setup, &fit), BASE_OK);
    for (int64_t s = 0; s < fit->sweeps; s++)
        assert_int_equal(recsys_sweep(fit), BASE_OK);
    assert_true(fabs((double)fit->mean - p->mean) < 1e-6);
    for (uint32_t u = 0; u < USERS; u++)
        assert_true(fabs((double)fit->buffers[RECSYS_BIAS_USERS].at[u] - p->user[u]) < bound);
    for (uint32_t i = 0; i < ITEMS; i++)
        assert_true(fabs((double)fit->buffers[RECSYS_BIAS_ITEMS].at[i] - p->item[i]) < bound);
    for (uint32_t u = 0; u < USERS; u += 11)
        for (uint32_t i = 0; i < ITEMS; i += 7) {
            const double x = fmin(5, fmax(0.5, p->mean + p->user[u] + p->item[i]));

            assert_true(fabs((double)recsys_predict(fit, u, i, 0).value - x) < 3 * bound);
        }
    recsys_fit_free(fit);
    base_free(options);
    base_team_free(team);
}

static void test_stat(void **state)
{
    const struct plain p = plain_of(1, 25, 10);

    (void)state;
    compare("bias-stat:user-damping=25,item-damping=10", &p, 1e-6);
}

static void test_als(void **state)
{
    const struct plain three = plain_of(3, 5, 3), none = plain_of(4, 0, 1);

    (void)state;
    compare("bias-als:sweeps=3,user-damping=5,item-damping=3", &three, 1e-6);
    compare("bias-als:sweeps=4,user-damping=0,item-damping=1", &none, 1e-6);
}

static void test_same_minimum(void **state)
{
    const struct plain p = plain_of(200, 5, 3);

    (void)state;
    compare("bias-als:sweeps=100,user-damping=5,item-damping=3", &p, 1e-5);
    compare("bias-gd:sweeps=400,user-damping=5,item-damping=3", &p, 1e-4);
    compare("bias-gd:sweeps=900,rate=0.3,user-damping=5,item-damping=3", &p, 1e-4);
}

/* One step, row by row, both sides from the same biases. */
static void test_gradient_step(void **state)
{
    struct plain p = plain_of(0, 5, 3), users = p, items = p;

    (void)state;
    plain_solve(&users, true, 5);
    plain_solve(&items, false, 3);
    for (uint32_t u = 0; u < USERS; u++)
        p.user[u] = 0.25 * users.user[u]; /* from zero, the gradient by its curvature */
    for (uint32_t i = 0; i < ITEMS; i++)
        p.item[i] = 0.25 * items.item[i];
    compare("bias-gd:sweeps=1,rate=0.25,user-damping=5,item-damping=3", &p, 1e-6);
}

static int make_ratings(void **state)
{
    (void)state;
    rated_make(&rated, USERS, ITEMS, EACH);
    return 0;
}

static int free_ratings(void **state)
{
    (void)state;
    rated_fini(&rated);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stat),
        cmocka_unit_test(test_als),
        cmocka_unit_test(test_same_minimum),
        cmocka_unit_test(test_gradient_step),
    };

    return cmocka_run_group_tests(tests, make_ratings, free_ratings);
}
