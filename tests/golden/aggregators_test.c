/* SPDX-License-Identifier: MIT
 *
 * Aggregators that compare updates against their definitions, from aggregators.txt beside this file
 * (make_aggregators.py made it and says what the updates are).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "train/aggregator.h"

enum { COUNT = 37, MOST = 16 };

static void aggregate(uint64_t seed, const char *text, int count, int bad, float y[COUNT])
{
    static float values[MOST][COUNT];
    struct train_row rows[MOST];
    struct train_aggregation aggregation;

    for (int r = 0; r < count; r++) {
        struct base_rng rng = base_rng_of(seed, BASE_STREAM_TEST, 5, 0, (uint32_t)r);

        for (uint32_t i = 0; i < COUNT; i++)
            values[r][i] =
                2.0f * base_rng_unit(base_rng_u32(&rng, i)) - 1.0f + (r >= count - bad ? 1.5f : 0);
        rows[r] = (struct train_row){.values = values[r],
                                     .samples = 50 + 10 * r,
                                     .loss = 1,
                                     .judged = 1,
                                     .trusted = r == 1,
                                     .age = r % 3 == 2};
    }
    if (train_aggregation_find(text, &aggregation) != BASE_OK ||
        train_aggregate(&aggregation, rows, count, COUNT, y, NULL) != BASE_OK)
        fail_msg("%s: %s", text, base_message());
    train_aggregation_fini(&aggregation);
}

static void check(const char *text, const float y[COUNT], char *line)
{
    char *at = line;

    assert_non_null(line);
    for (int i = 0; i < COUNT; i++) {
        double want = strtod(at, &at);

        if (!(fabs((double)y[i] - want) <= 2e-6))
            fail_msg("%s: value %d is %.9g, by its definition %.9g", text, i, (double)y[i], want);
    }
    assert_string_equal(at, "");
}

static void test_definitions(void **state)
{
    char *file = NULL, *rest = NULL, text[64];
    uint64_t seed = 0;
    size_t size;
    int count, bad, cases = 0;
    float y[COUNT];

    (void)state;
    assert_int_equal(
        base_file_read(TEST_SOURCE_DIR "/golden/aggregators.txt", 1 << 20, &file, &size), BASE_OK);
    for (char *line = strtok_r(file, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] == '#' || sscanf(line, "seed %" SCNu64, &seed) == 1)
            continue;
        if (sscanf(line, "case %63s %d %d", text, &count, &bad) != 3 || count > MOST)
            fail_msg("aggregators.txt has the line '%s'", line);
        aggregate(seed, text, count, bad, y);
        check(text, y, strtok_r(NULL, "\n", &rest));
        cases++;
    }
    assert_true(cases >= 16);
    base_free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definitions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
