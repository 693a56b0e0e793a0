/* SPDX-License-Identifier: MIT
 *
 * The algebra of an audit against plain forms of it, fake users of every kind that are planted and
 * found, honest ratings in which few are suspected, and what cannot be poisoned or audited.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "recsys/audit.h"
#include "recsys/make.h"
#include "recsys/shill.h"
#include "recsys/split.h"
#include "support/datafiles.h"

static char *folder;

static struct recsys_ratings *open_ratings(const char *path)
{
    struct recsys_ratings *r;

    if (recsys_ratings_open(path, &(struct recsys_options){.no_cache = true}, &r) != BASE_OK)
        fail_msg("%s", base_message());
    return r;
}

/* ---- algebra ---- */

enum { ROWS = 40, COLUMNS = 12, FEW = 3 };

/* a (n,n), symmetric: its eigenvalues, and eigenvectors as columns of v; Jacobi's way. */
static void eigen(int n, double a[COLUMNS][COLUMNS], double v[COLUMNS][COLUMNS])
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            v[i][j] = i == j;
    for (int sweep = 0; sweep < 50; sweep++)
        for (int p = 0; p < n; p++)
            for (int q = p + 1; q < n; q++) {
                double angle = 0.5 * atan2(2 * a[p][q], a[p][p] - a[q][q]);
                double c = cos(angle), s = sin(angle);

                for (int k = 0; k < n; k++) {
                    double x = a[k][p], y = a[k][q], z = v[k][p], w = v[k][q];

                    a[k][p] = c * x + s * y;
                    a[k][q] = c * y - s * x;
                    v[k][p] = c * z + s * w;
                    v[k][q] = c * w - s * z;
                }
                for (int k = 0; k < n; k++) {
                    double x = a[p][k], y = a[q][k];

                    a[p][k] = c * x + s * y;
                    a[q][k] = c * y - s * x;
                }
            }
}

/* Rows that have three columns of a group of four, and sometimes one of another group: clear
 * components. */
static void draw_rows(double dense[ROWS][COLUMNS])
{
    struct base_rng rng = base_rng_of(3, BASE_STREAM_TEST, 0, 0, 0);

    memset(dense, 0, ROWS * sizeof *dense);
    for (uint32_t r = 0; r < ROWS; r++) {
        uint32_t group = r % 2 != 0 ? 0 : r % 3 != 0 ? 4 : 8;

        for (uint32_t i = 0; i < 4; i++)
            dense[r][group + i] = i != base_rng_u32(&rng, r) % 4;
        dense[r][base_rng_u32(&rng, ROWS + r) % COLUMNS] = 1;
    }
}

static void test_components_are_those_of_the_dense_matrix(void **state)
{
    double dense[ROWS][COLUMNS], gram[COLUMNS][COLUMNS] = {0}, v[COLUMNS][COLUMNS];
    double explained[ROWS], length[ROWS];
    uint64_t start[ROWS + 1] = {0};
    uint32_t column[ROWS * COLUMNS], count = 0;
    struct recsys_rows rows = {.rows = ROWS, .columns = COLUMNS, .start = start, .column = column};
    bool taken[COLUMNS] = {0};
    double expected[ROWS] = {0};

    (void)state;
    draw_rows(dense);
    for (int r = 0; r < ROWS; r++) {
        for (uint32_t c = 0; c < COLUMNS; c++)
            if (dense[r][c] > 0)
                column[count++] = c;
        start[r + 1] = count;
        length[r] = sqrt((double)(start[r + 1] - start[r]));
        for (int i = 0; i < COLUMNS; i++)
            for (int j = 0; j < COLUMNS; j++)
                gram[i][j] += dense[r][i] * dense[r][j] / (length[r] * length[r]);
    }
    rows.count = count;
    eigen(COLUMNS, gram, v);
    for (int k = 0; k < FEW; k++) {
        int best = -1;

        for (int i = 0; i < COLUMNS; i++)
            if (!taken[i] && (best < 0 || gram[i][i] > gram[best][best]))
                best = i;
        taken[best] = true;
        for (int r = 0; r < ROWS; r++) {
            double product = 0;

            for (int c = 0; c < COLUMNS; c++)
                product += dense[r][c] / length[r] * v[c][best];
            expected[r] += product * product;
        }
    }
    assert_int_equal(recsys_explained(&rows, FEW, explained), BASE_OK);
    for (int r = 0; r < ROWS; r++)
        if (!(fabs(explained[r] - expected[r]) < 1e-4))
            fail_msg("row %d: %.9f, by the dense matrix %.9f", r, explained[r], expected[r]);
}

static void test_scores_are_distances_from_neighbours(void **state)
{
    const uint32_t order[] = {4, 3, 2, 1, 0};
    double values[] = {1, 2, 3, 4, 14}, equal[] = {7, 7, 7, 7, 7};

    (void)state;
    assert_int_equal(recsys_standardise(order, 5, 10, values), BASE_OK);
    assert_true(fabs(values[2]) < 1e-12); /* the median, 3, whose median distance is 1 */
    assert_true(fabs(values[4] - 11 / 1.4826) < 1e-9);
    assert_true(fabs(values[0] + 2 / 1.4826) < 1e-9);
    assert_int_equal(recsys_standardise(order, 5, 10, equal), BASE_OK);
    assert_true(equal[0] == 0 && equal[4] == 0);
}

static void test_narrow_neighbours_are_those_of_the_order(void **state)
{
    const uint32_t order[] = {0, 2, 4, 1, 3, 5};
    double values[] = {1, 100, 2, 101, 6, 109};

    (void)state;
    assert_int_equal(recsys_standardise(order, 6, 1, values), BASE_OK);
    assert_true(fabs(values[2]) < 1e-12);             /* the median of 1, 2, 6 */
    assert_true(fabs(values[5] - 8 / 1.4826) < 1e-9); /* of 100, 101, 109 */
}

static void test_poisson_tail_is_the_sum(void **state)
{
    static const double means[] = {0.05, 0.7, 3, 11};

    (void)state;
    for (size_t m = 0; m < sizeof means / sizeof *means; m++)
        for (uint32_t n = (uint32_t)means[m] + 1; n < 40; n++) {
            double sum = 0;

            for (uint32_t i = n + 200; i-- > n;)
                sum += exp(i * log(means[m]) - means[m] - lgamma(i + 1.0));
            if (!(fabs(recsys_poisson_tail(means[m], n) - log(sum)) < 1e-6))
                fail_msg("mean %g, %u: %g and not %g", means[m], n,
                         recsys_poisson_tail(means[m], n), log(sum));
        }
    assert_true(recsys_poisson_tail(3, 2) == 0);
}

/* ---- planted profiles ---- */

static char *make_honest(uint64_t seed)
{
    char *path = base_format("%s/honest-%d.csv", folder, (int)seed);
    const struct recsys_make make = {
        .users = 800, .items = 1500, .ratings = 50000, .seed = seed, .format = "csv", .threads = 1};

    if (!base_exists(path) && recsys_make(&make, path) != BASE_OK)
        fail_msg("%s", base_message());
    return path;
}

/* The share of the suspects that are fake, and of the fakes that are suspects. */
static void judge(const struct recsys_ratings *r, const struct data_index *fakes,
                  const struct recsys_audit *audit, double *precision_p, double *recall_p)
{
    bool *fake = NULL;
    uint32_t right = 0;

    if (recsys_excluded(r, fakes, &fake) != BASE_OK)
        fail_msg("%s", base_message());
    for (uint32_t i = 0; i < audit->suspect_count; i++)
        right += fake[audit->suspects[i].user];
    *precision_p = audit->suspect_count > 0 ? (double)right / audit->suspect_count : 0;
    *recall_p = (double)right / fakes->count;
    base_free(fake);
}

static void test_fake_users_are_found(void **state)
{
    char *path = make_honest(1), *poisoned = base_format("%s/poisoned.csv", folder);
    struct recsys_ratings *honest = open_ratings(path);

    (void)state;
    for (int i = 0; recsys_shill_kinds[i] != NULL; i++) {
        const struct recsys_shill how = {recsys_shill_kinds[i], 5, 7};
        struct data_index fakes;
        struct recsys_ratings *r;
        struct recsys_audit audit;
        double precision, recall;

        if (recsys_shill(honest, &how, poisoned, &fakes) != BASE_OK)
            fail_msg("%s", base_message());
        assert_int_equal(fakes.count, 40);
        r = open_ratings(poisoned);
        assert_int_equal(r->users, honest->users + 40);
        assert_int_equal(recsys_audit(r, &audit), BASE_OK);
        judge(r, &fakes, &audit, &precision, &recall);
        if (!(precision >= 0.9 && recall >= 0.9))
            fail_msg("%s: precision %.3f, recall %.3f", how.kind, precision, recall);
        recsys_audit_fini(&audit);
        recsys_ratings_close(r);
        data_index_fini(&fakes);
    }
    recsys_ratings_close(honest);
    base_free(path);
    base_free(poisoned);
}

/* Honest users of like taste may look like a campaign: up to one in a hundred. */
static void test_few_honest_users_are_suspected(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        char *path = make_honest(seed);
        struct recsys_ratings *r = open_ratings(path);
        struct recsys_audit audit;

        assert_int_equal(recsys_audit(r, &audit), BASE_OK);
        if (audit.suspect_count * 100 > r->users)
            fail_msg("seed %d: %u honest users are suspicious", (int)seed, audit.suspect_count);
        recsys_audit_fini(&audit);
        recsys_ratings_close(r);
        base_free(path);
    }
}

/* ---- excluded users ---- */

static void test_excluded_users_are_in_no_part(void **state)
{
    char *path = make_honest(1);
    struct recsys_ratings *r = open_ratings(path);
    bool *excluded = base_calloc(r->users, sizeof *excluded);
    struct recsys_divide how = {.split = "0.2", .validation = 0.1, .seed = 1};
    struct recsys_division all, some;
    uint64_t gone = 0, left;

    (void)state;
    for (uint32_t u = 0; u < r->users; u += 3) {
        excluded[u] = true;
        gone += r->by_user.start[u + 1] - r->by_user.start[u];
    }
    assert_int_equal(recsys_divide(r, &how, &all), BASE_OK);
    how.excluded = excluded;
    assert_int_equal(recsys_divide(r, &how, &some), BASE_OK);
    left = some.by_user.count + some.test.count + some.validation.count;
    assert_int_equal(left, r->count - gone);
    for (uint32_t u = 0; u < r->users; u++) {
        const uint64_t count = some.by_user.start[u + 1] - some.by_user.start[u];

        assert_int_equal(count, excluded[u] ? 0 : all.by_user.start[u + 1] - all.by_user.start[u]);
    }
    recsys_division_fini(&all);
    recsys_division_fini(&some);
    recsys_ratings_close(r);
    base_free(excluded);
    base_free(path);
}

/* ---- what is refused ---- */

static void expect_message(base_status st, base_code code, const char *words)
{
    assert_int_equal(st, code);
    if (strstr(base_message(), words) == NULL)
        fail_msg("'%s' does not say '%s'", base_message(), words);
}

static void test_what_cannot_be_poisoned_or_audited(void **state)
{
    const struct recsys_shill how = {"random", 5, 1};
    char *path = base_format("%s/flat.csv", folder), *honest = make_honest(1);
    char *out = base_format("%s/no.csv", folder);
    const char text[] = "userId,movieId,rating,timestamp\n1,1,3,1\n1,2,3,1\n2,1,3,1\n";
    struct recsys_ratings *flat, *r = open_ratings(honest);
    struct recsys_audit audit;
    struct data_index index = {0};
    char **users = base_calloc(2, sizeof *users);
    bool *excluded;

    (void)state;
    support_write(folder, "flat.csv", text, strlen(text));
    flat = open_ratings(path);
    expect_message(recsys_shill(flat, &how, out, &index), BASE_ERR_DATA, "has 2 items");
    expect_message(recsys_audit(flat, &audit), BASE_ERR_DATA, "all ratings");
    expect_message(recsys_shill(r, &(struct recsys_shill){"random", 0.01, 1}, out, &index),
                   BASE_ERR_USAGE, "not one user");
    assert_false(base_exists(out));
    users[0] = base_strdup("strange");
    data_index_of_users(r->digest, r->users, users, 1, &index);
    expect_message(recsys_excluded(r, &index, &excluded), BASE_ERR_DATA, "user 'strange'");
    expect_message(recsys_excluded(flat, &index, &excluded), BASE_ERR_DATA, "another data set");
    data_index_fini(&index);
    recsys_ratings_close(flat);
    recsys_ratings_close(r);
    base_free(path);
    base_free(honest);
    base_free(out);
}

static int set_up(void **state)
{
    (void)state;
    base_log_level(BASE_WARN);
    folder = support_scratch();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_scratch_free(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_components_are_those_of_the_dense_matrix),
        cmocka_unit_test(test_scores_are_distances_from_neighbours),
        cmocka_unit_test(test_narrow_neighbours_are_those_of_the_order),
        cmocka_unit_test(test_poisson_tail_is_the_sum),
        cmocka_unit_test(test_fake_users_are_found),
        cmocka_unit_test(test_few_honest_users_are_suspected),
        cmocka_unit_test(test_excluded_users_are_in_no_part),
        cmocka_unit_test(test_what_cannot_be_poisoned_or_audited),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
