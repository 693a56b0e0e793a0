/* SPDX-License-Identifier: MIT
 *
 * What every format of train/wires promises, with all examples of options: bounds, error feedback,
 * zeros, the same bytes again, and no trust in what comes from outside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "train/wire.h"

enum { MOST = 777, FEW = 97, ROUNDS = 1000 };

static const size_t counts[] = {0, 1, 2, 3, 64, 65, 255, 256, 257, MOST};

struct room {
    struct train_wiring wiring;
    float x[MOST], residual[MOST], y[MOST];
    uint8_t *bytes, *again;
};

static void for_every_wire(void (*check)(struct room *room))
{
    static const char *const none[] = {"", NULL};

    for (size_t i = 0; i < train_wire_count; i++) {
        const struct train_wire *wire = train_wire_registry[i];
        const char *const *examples = wire->examples != NULL ? wire->examples : none;

        assert_non_null(wire->help);
        for (; *examples != NULL; examples++) {
            char *text = base_format("%s/%s", wire->name, *examples);
            struct room room = {0};

            assert_int_equal(train_wire_find(text, &room.wiring), BASE_OK);
            room.bytes = base_calloc(train_wire_bound(&room.wiring, MOST) + 1, 1);
            room.again = base_calloc(train_wire_bound(&room.wiring, MOST) + 1, 1);
            check(&room);
            base_free(room.bytes);
            base_free(room.again);
            train_wiring_fini(&room.wiring);
            base_free(text);
        }
    }
}

/* About Gaussian: the sum of twelve units. */
static float gauss(uint32_t round, uint32_t index)
{
    struct base_rng rng = base_rng_of(7, BASE_STREAM_TEST, 0, round, index);
    float sum = -6;

    for (uint32_t i = 0; i < 12; i++)
        sum += base_rng_unit(base_rng_u32(&rng, i));
    return sum;
}

/* Values of very different sizes; a third of them are zeros, as padding is, and so is a run in the
 * middle, as in rows of an embedding that no sample has. */
static void fill(struct room *r, uint32_t round)
{
    for (uint32_t i = 0; i < MOST; i++)
        r->x[i] =
            i % 3 == 1 || (i > 300 && i < 350) ? 0 : expf(3 * gauss(0, i)) * gauss(1 + round, i);
}

static size_t encode(struct room *r, size_t count)
{
    size_t length = train_wire_encode(&r->wiring, r->x, r->residual, count, r->bytes);

    assert_true(length <= train_wire_bound(&r->wiring, count));
    return length;
}

static base_status decode(struct room *r, size_t length, size_t count)
{
    return train_wire_decode(&r->wiring, r->bytes, length, r->y, count);
}

static void check_one_message(struct room *r)
{
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        size_t count = counts[c];
        size_t length;

        memset(r->residual, 0, sizeof r->residual);
        fill(r, 0);
        length = encode(r, count);
        assert_int_equal(decode(r, length, count), BASE_OK);
        for (size_t i = 0; i < count; i++) { /* what is sent and what is left are the value */
            float exact = fabsf(r->x[i] - r->y[i] - r->residual[i]);

            assert_true(exact <= 1e-6f * fabsf(r->x[i]));
            assert_true(r->x[i] != 0 || (r->y[i] == 0 && r->residual[i] == 0));
        }
        if (r->wiring.wire->exact)
            assert_memory_equal(r->x, r->y, count * sizeof *r->x);
        memcpy(r->again, r->bytes, length);
        memset(r->residual, 0, sizeof r->residual);
        assert_int_equal(encode(r, count), length);
        assert_memory_equal(r->again, r->bytes, length);
    }
}

static void test_one_message(void **state)
{
    (void)state;
    for_every_wire(check_one_message);
}

/* The sum of what arrives is the sum of what was sent, but for one residual; and residuals do not
 * grow: what is left after many rounds is of the size of the values that wait to be sent. */
static void check_feedback(struct room *r)
{
    static double sent[FEW], arrived[FEW];
    double error = 0, whole = 0;

    memset(sent, 0, sizeof sent);
    memset(arrived, 0, sizeof arrived);
    fill(r, 0);
    for (int round = 0; round < ROUNDS; round++) {
        size_t length = encode(r, FEW);

        assert_int_equal(decode(r, length, FEW), BASE_OK);
        for (size_t i = 0; i < FEW; i++) {
            sent[i] += (double)r->x[i];
            arrived[i] += (double)r->y[i];
        }
    }
    for (size_t i = 0; i < FEW; i++) {
        assert_true(fabs(sent[i] - arrived[i] - (double)r->residual[i]) <= 1e-4 * fabs(sent[i]));
        error += fabs(sent[i] - arrived[i]);
        whole += fabs(sent[i]);
    }
    assert_true(error <= 0.1 * whole);
}

static void test_error_feedback(void **state)
{
    (void)state;
    for_every_wire(check_feedback);
}

static void check_bad_lengths(struct room *r)
{
    size_t length;

    fill(r, 0);
    length = encode(r, MOST);
    for (size_t shorter = 0; shorter < length; shorter++)
        assert_int_equal(decode(r, shorter, MOST), BASE_ERR_DATA);
    r->bytes[length] = 0;
    assert_int_equal(decode(r, length + 1, MOST), BASE_ERR_DATA);
    assert_int_equal(decode(r, length, 0), BASE_ERR_DATA);
}

static void test_bad_lengths(void **state)
{
    (void)state;
    for_every_wire(check_bad_lengths);
}

static void check_not_finite(struct room *r)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};

    for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++) {
        memset(r->residual, 0, sizeof r->residual);
        fill(r, 0);
        r->x[5] = bad[b];
        assert_int_equal(decode(r, encode(r, MOST), MOST), BASE_ERR_DATA);
    }
}

static void test_not_finite(void **state)
{
    (void)state;
    for_every_wire(check_not_finite);
}

/* Random damage is refused or gives finite values, never more. */
static void check_damage(struct room *r)
{
    fill(r, 0);
    for (uint64_t round = 0; round < 200; round++) {
        size_t length = encode(r, MOST), at = (size_t)base_rng_mix(2 * round) % length;

        r->bytes[at] = (uint8_t)base_rng_mix(2 * round + 1);
        if (decode(r, length, MOST) != BASE_OK)
            continue;
        for (size_t i = 0; i < MOST; i++)
            assert_true(isfinite(r->y[i]));
    }
}

static void test_damage(void **state)
{
    (void)state;
    for_every_wire(check_damage);
}

/* The smallest and the largest floats. */
static void check_extremes(struct room *r)
{
    static const float sizes[] = {1e-45f, 1e-38f, 1e-30f, 1e30f, 1e38f};

    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        memset(r->residual, 0, sizeof r->residual);
        for (size_t i = 0; i < MOST; i++)
            r->x[i] = i % 2 ? sizes[s] : -sizes[s];
        assert_int_equal(decode(r, encode(r, MOST), MOST), BASE_OK);
        for (size_t i = 0; i < MOST; i++)
            assert_true(fabsf(r->y[i]) <= 1.01f * sizes[s] && isfinite(r->residual[i]));
    }
}

static void test_extremes(void **state)
{
    (void)state;
    for_every_wire(check_extremes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_message), cmocka_unit_test(test_error_feedback),
        cmocka_unit_test(test_bad_lengths), cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_damage),      cmocka_unit_test(test_extremes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
