/* SPDX-License-Identifier: MIT
 *
 * Texts of wires, how much each loses in one message, and what each refuses.
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

enum { COUNT = 1000 };

struct message {
    struct train_wiring wiring;
    float x[COUNT], residual[COUNT], y[COUNT];
    uint8_t *bytes;
    size_t length;
};

/* About Gaussian: the sum of twelve units. */
static float gauss(uint32_t round, uint32_t index)
{
    struct base_rng rng = base_rng_of(7, BASE_STREAM_TEST, 0, round, index);
    float sum = -6;

    for (uint32_t i = 0; i < 12; i++)
        sum += base_rng_unit(base_rng_u32(&rng, i));
    return sum;
}

static void open_message(struct message *m, const char *text)
{
    *m = (struct message){0};
    assert_int_equal(train_wire_find(text, &m->wiring), BASE_OK);
    m->bytes = base_calloc(train_wire_bound(&m->wiring, COUNT), 1);
    for (int i = 0; i < COUNT; i++)
        m->x[i] = gauss(0, (uint32_t)i);
}

static void close_message(struct message *m)
{
    base_free(m->bytes);
    train_wiring_fini(&m->wiring);
}

static base_status send(struct message *m, size_t count)
{
    m->length = train_wire_encode(&m->wiring, m->x, m->residual, count, m->bytes);
    assert_true(m->length <= train_wire_bound(&m->wiring, count));
    return train_wire_decode(&m->wiring, m->bytes, m->length, m->y, count);
}

static double squares(const float *x)
{
    double sum = 0;

    for (int i = 0; i < COUNT; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

/* What a format may take and lose of a thousand Gaussian values. */
static void test_sizes_and_losses(void **state)
{
    static const struct {
        const char *wire;
        size_t most_bytes;
        double most_loss; /* squares lost, of all */
    } cases[] = {
        {"fp32", 4000, 0},
        {"sparse", 4008, 0},
        {"bf16", 2000, 3e-6},
        {"int8", 1008, 1e-4},
        {"int4", 532, 2e-2},
        {"topk/share=1/bits=8", 1600, 1e-3},
        {"topk/share=0.1/bits=8", 450, 0.59}, /* the largest tenth has 0.42 of the squares */
        {"topk/share=0.1/bits=4", 155, 0.60},
        {"topk/share=0.1/bits=2", 115, 0.62},
        {"topk/share=0.01/bits=4", 40, 0.93},
    };
    struct message m;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        open_message(&m, cases[i].wire);
        assert_int_equal(send(&m, COUNT), BASE_OK);
        if (m.length > cases[i].most_bytes ||
            squares(m.residual) > cases[i].most_loss * squares(m.x))
            fail_msg("%s: %zu bytes, %g lost", cases[i].wire, m.length,
                     squares(m.residual) / squares(m.x));
        close_message(&m);
    }
}

static void test_topk_sends_the_largest(void **state)
{
    struct message m;

    (void)state;
    open_message(&m, "topk/share=0.003/bits=8");
    memset(m.x, 0, sizeof m.x);
    m.x[0] = 2;
    m.x[17] = -64;
    m.x[500] = 1;
    m.x[999] = 1; /* equal to the one before, and one too many */
    m.x[998] = 0.5f;
    assert_int_equal(send(&m, COUNT), BASE_OK);
    assert_true(m.y[0] == 2 && m.y[17] == -64 && m.y[500] == 1);
    assert_true(m.y[998] == 0 && m.y[999] == 0 && m.residual[999] == 1);
    assert_true(m.residual[0] == 0 && m.residual[998] == 0.5f);
    close_message(&m);
}

/* Runs of zeros take eight bytes each, few zeros between values are values, and so is minus zero.
 */
static void test_sparse_leaves_out_zeros(void **state)
{
    static const struct {
        int at, values;
        size_t bytes; /* of all so far and the zeros after them */
    } cases[] = {{0, 0, 8},
                 {400, 8, 8 + 8 * 4 + 8},
                 {410, 3, 8 + 13 * 4 + 8},              /* two zeros apart: one run */
                 {416, 1, 8 + 13 * 4 + 8 + 4 + 8},      /* three apart: another one */
                 {998, 2, 8 + 13 * 4 + 8 + 4 + 8 + 8}}; /* up to the end */
    struct message m;

    (void)state;
    open_message(&m, "sparse");
    memset(m.x, 0, sizeof m.x);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int k = 0; k < cases[i].values; k++)
            m.x[cases[i].at + k] = k == 1 ? -0.0f : (float)(k + 1);
        memset(m.y, 1, sizeof m.y);
        assert_int_equal(send(&m, COUNT), BASE_OK);
        assert_int_equal(m.length, cases[i].bytes);
        assert_memory_equal(m.x, m.y, sizeof m.x);
    }
    m.bytes[0] = 0; /* no zeros before the first value: too few values in all */
    assert_int_equal(train_wire_decode(&m.wiring, m.bytes, m.length, m.y, COUNT), BASE_ERR_DATA);
    close_message(&m);
}

static void test_bad_texts(void **state)
{
    static const char *const texts[] = {"",
                                        "fp64",
                                        "/",
                                        "fp32/bits=4",
                                        "topk/bits=1",
                                        "topk/bits=9",
                                        "topk/share=0",
                                        "topk/share=2",
                                        "topk/share",
                                        "topk/size=3",
                                        "topk:share=0.1",
                                        "topk,share=0.1"};
    struct train_wiring wiring;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(train_wire_find(texts[i], &wiring), BASE_ERR_USAGE);
        assert_null(wiring.options);
    }
}

static void test_blocks_refuse(void **state)
{
    struct message m;

    (void)state;
    open_message(&m, "int8");
    assert_int_equal(send(&m, COUNT), BASE_OK);
    m.bytes[1] = 0x7f; /* the scale: 0x7f.. is about 1e38 */
    m.bytes[0] = 0x7f;
    assert_int_equal(train_wire_decode(&m.wiring, m.bytes, m.length, m.y, COUNT), BASE_ERR_DATA);
    m.bytes[1] = 0xbf; /* a negative one */
    assert_int_equal(train_wire_decode(&m.wiring, m.bytes, m.length, m.y, COUNT), BASE_ERR_DATA);
    m.bytes[1] = 0x3f;
    m.bytes[9] = 0x80; /* -128 */
    assert_int_equal(train_wire_decode(&m.wiring, m.bytes, m.length, m.y, COUNT), BASE_ERR_DATA);
    close_message(&m);
}

static void test_topk_refuses(void **state)
{
    struct message m;

    (void)state;
    open_message(&m, "topk/share=0.01/bits=2");
    assert_int_equal(send(&m, COUNT), BASE_OK);
    m.bytes[0] = 11; /* more than the share */
    assert_int_equal(train_wire_decode(&m.wiring, m.bytes, m.length, m.y, COUNT), BASE_ERR_DATA);
    m.bytes[0] = 9; /* fewer than there are */
    assert_int_equal(train_wire_decode(&m.wiring, m.bytes, m.length, m.y, COUNT), BASE_ERR_DATA);
    m.bytes[0] = 10;
    m.bytes[4] = 32; /* the parameter of distances */
    assert_int_equal(train_wire_decode(&m.wiring, m.bytes, m.length, m.y, COUNT), BASE_ERR_DATA);
    m.bytes[4] = 31; /* distances far beyond the end */
    assert_int_equal(train_wire_decode(&m.wiring, m.bytes, m.length, m.y, COUNT), BASE_ERR_DATA);
    m.bytes[4] = 6;
    m.bytes[6] = 0xff; /* a level */
    assert_int_equal(train_wire_decode(&m.wiring, m.bytes, m.length, m.y, COUNT), BASE_ERR_DATA);
    close_message(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_and_losses),
        cmocka_unit_test(test_topk_sends_the_largest),
        cmocka_unit_test(test_sparse_leaves_out_zeros),
        cmocka_unit_test(test_bad_texts),
        cmocka_unit_test(test_blocks_refuse),
        cmocka_unit_test(test_topk_refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
