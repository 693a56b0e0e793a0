/* SPDX-License-Identifier: MIT
 *
 * Order of an epoch, and batches: every sample exactly once, the same whatever the batch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/loader.h"
#include "support/datafiles.h"

enum { SIZE = 8 * 8, TRAIN = 203 };

static int setup(void **state)
{
    const struct data_options options = {.validation = 0};

    return (int)data_open("synthetic:classes=3,shape=1x8x8,train=203,test=20", &options,
                          (struct data_set **)state);
}

static int teardown(void **state)
{
    data_close(*state);
    return 0;
}

static void test_order_is_a_permutation(void **state)
{
    for (int balanced = 0; balanced < 2; balanced++)
        for (uint32_t epoch = 0; epoch < 3; epoch++) {
            uint32_t order[TRAIN];
            bool seen[TRAIN] = {0};

            data_order(*state, DATA_TRAIN, 5, epoch, balanced, order);
            for (int i = 0; i < TRAIN; i++) {
                assert_true(order[i] < TRAIN);
                assert_false(seen[order[i]]);
                seen[order[i]] = true;
            }
        }
}

static void test_order_depends_on_seed_and_epoch(void **state)
{
    uint32_t a[TRAIN], b[TRAIN];

    for (int balanced = 0; balanced < 2; balanced++) {
        data_order(*state, DATA_TRAIN, 5, 1, balanced, a);
        data_order(*state, DATA_TRAIN, 5, 1, balanced, b);
        assert_memory_equal(a, b, sizeof a);
        data_order(*state, DATA_TRAIN, 6, 1, balanced, b);
        assert_memory_not_equal(a, b, sizeof a);
        data_order(*state, DATA_TRAIN, 5, 2, balanced, b);
        assert_memory_not_equal(a, b, sizeof a);
    }
}

/* In a set of which one class is rare, every window has it in its share, two more or less. */
static void test_balanced_windows(void **state)
{
    enum { COUNT = 400, WINDOW = 40 };
    const struct data_options options = {.unit_range = true};
    uint8_t *images = NULL, *labels = NULL;
    char *folder = support_scratch();
    struct data_set *set = NULL;
    uint32_t order[COUNT];
    size_t size = support_idx_images(COUNT, 2, 2, &images);

    (void)state;
    support_write(folder, "train-images-idx3-ubyte", images, size);
    size = support_idx_labels(COUNT, 1, &labels);
    for (int i = 0; i < COUNT / 10; i++)
        labels[8 + i] = 1; /* a tenth of all */
    support_write(folder, "train-labels-idx1-ubyte", labels, size);
    assert_int_equal(data_open(folder, &options, &set), BASE_OK);
    data_order(set, DATA_TRAIN, 1, 0, true, order);
    for (int first = 0; first + WINDOW <= COUNT; first++) {
        int rare = 0;

        for (int i = 0; i < WINDOW; i++)
            rare += data_label(set, DATA_TRAIN, order[first + i]) == 1;
        assert_in_range(rare, WINDOW / 10 - 2, WINDOW / 10 + 2);
    }
    data_close(set);
    base_free(images);
    base_free(labels);
    support_scratch_free(folder);
}

/* All samples of an epoch as the loader gives them, (count,8,8), in order. */
static float *collect(const struct data_set *set, uint32_t batch, uint32_t epoch,
                      struct data_augment augment)
{
    struct data_loader *loader = NULL;
    struct data_batch b;
    uint32_t order[TRAIN], done = 0;
    float *x = base_calloc((size_t)TRAIN * SIZE, sizeof *x);

    data_order(set, DATA_TRAIN, 1, 0, false, order);
    assert_int_equal(
        data_loader_new(set, DATA_TRAIN, batch, (struct data_share){0}, 9, augment, &loader),
        BASE_OK);
    assert_int_equal(data_loader_begin(loader, epoch, order, TRAIN), BASE_OK);
    for (;;) {
        assert_int_equal(data_loader_next(loader, &b), BASE_OK);
        if (b.count == 0)
            break;
        assert_true(b.count == batch || done + b.count == TRAIN);
        for (uint32_t i = 0; i < b.count; i++) {
            assert_int_equal(b.ids[i], order[done + i]);
            assert_int_equal(b.labels[i], data_label(set, DATA_TRAIN, b.ids[i]));
        }
        memcpy(x + (size_t)done * SIZE, b.x, sizeof(float) * b.count * SIZE);
        done += b.count;
    }
    assert_int_equal(done, TRAIN);
    assert_int_equal(data_loader_next(loader, &b), BASE_OK);
    assert_int_equal(b.count, 0);
    data_loader_free(loader);
    return x;
}

static void test_batch_size_does_not_matter(void **state)
{
    static const uint32_t batches[] = {2, 7, 64, TRAIN, 1000};
    const struct data_augment augment = {2, true};
    float *one = collect(*state, 1, 3, augment), *other;

    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        float *x = collect(*state, batches[i], 3, augment);

        assert_memory_equal(one, x, sizeof(float) * TRAIN * SIZE);
        base_free(x);
    }
    other = collect(*state, 64, 4, augment);
    assert_memory_not_equal(one, other, sizeof(float) * TRAIN * SIZE);
    base_free(other);
    base_free(one);
}

static void test_normalises(void **state)
{
    float *x = collect(*state, 32, 0, (struct data_augment){0});
    double sum = 0, squares = 0, n = (double)TRAIN * SIZE;

    for (int i = 0; i < TRAIN * SIZE; i++) {
        sum += x[i];
        squares += (double)x[i] * x[i];
    }
    assert_true(sum / n > -1e-4 && sum / n < 1e-4);
    assert_true(squares / n > 0.999 && squares / n < 1.001);
    base_free(x);
}

/* Every augmented image is one of the crops of the black-padded image, some of them mirrored. */
static void test_crops_and_flips(void **state)
{
    enum { PAD = 2, SIDE = 8 };
    const struct data_info *info = data_describe(*state);
    float *x = collect(*state, 32, 0, (struct data_augment){PAD, true});
    uint32_t order[TRAIN];
    int views[2][2 * PAD + 1][2 * PAD + 1] = {0}, used = 0;

    data_order(*state, DATA_TRAIN, 1, 0, false, order);
    for (int s = 0; s < TRAIN; s++) {
        uint8_t pixels[SIZE];
        bool found = false;

        assert_int_equal(data_pixels(*state, DATA_TRAIN, order[s], pixels), BASE_OK);
        for (int v = 0; v < 2 * (2 * PAD + 1) * (2 * PAD + 1) && !found; v++) {
            int mirror = v % 2, dy = v / 2 % (2 * PAD + 1) - PAD, dx = v / 2 / (2 * PAD + 1) - PAD;

            found = true;
            for (int i = 0; i < SIZE && found; i++) {
                int r = i / SIDE + dy, c = (mirror ? SIDE - 1 - i % SIDE : i % SIDE) + dx;
                bool inside = r >= 0 && r < SIDE && c >= 0 && c < SIDE;
                float level = inside ? (float)pixels[r * SIDE + c] / 255.0f : 0.0f;

                found = x[s * SIZE + i] == (level - info->mean[0]) / info->deviation[0];
            }
            views[mirror][dy + PAD][dx + PAD] += found;
        }
        assert_true(found);
    }
    for (int v = 0; v < 50; v++)
        used += ((int *)views)[v] > 0;
    assert_true(used > 40); /* 203 draws from 50 views miss 0.8 of them on average */
    base_free(x);
}

/* A begin in the middle of an epoch starts anew, again and again. */
static void test_cancel(void **state)
{
    struct data_loader *loader = NULL;
    struct data_batch b;
    uint32_t order[TRAIN];

    data_order(*state, DATA_TRAIN, 1, 0, false, order);
    assert_int_equal(data_loader_new(*state, DATA_TRAIN, 5, (struct data_share){0}, 1,
                                     (struct data_augment){0}, &loader),
                     BASE_OK);
    assert_int_equal(data_loader_next(loader, &b), BASE_OK); /* before the first begin: nothing */
    assert_int_equal(b.count, 0);
    for (uint32_t round = 0; round < 200; round++) {
        uint32_t first = round % 50, taken = round % 7;

        assert_int_equal(data_loader_begin(loader, 0, order + first, TRAIN - first), BASE_OK);
        for (uint32_t i = 0; i < taken; i++) {
            assert_int_equal(data_loader_next(loader, &b), BASE_OK);
            assert_int_equal(b.count, 5);
            assert_int_equal(b.ids[4], order[first + 5 * i + 4]);
            assert_int_equal(b.labels[4], data_label(*state, DATA_TRAIN, b.ids[4]));
        }
    }
    data_loader_free(loader); /* in the middle of an epoch, too */
}

static void test_errors_come_back(void **state)
{
    struct data_loader *loader = NULL;
    struct data_batch b;
    uint32_t order[] = {0, 1, 2, TRAIN, 4};
    const struct data_augment none = {0}, negative = {.pad = -1};

    assert_int_equal(
        data_loader_new(*state, DATA_TRAIN, 0, (struct data_share){0}, 1, none, &loader),
        BASE_ERR_USAGE);
    assert_int_equal(
        data_loader_new(*state, DATA_TRAIN, 2, (struct data_share){0}, 1, negative, &loader),
        BASE_ERR_USAGE);
    assert_null(loader);
    assert_int_equal(
        data_loader_new(*state, DATA_TRAIN, 2, (struct data_share){0}, 1, none, &loader), BASE_OK);
    assert_int_equal(data_loader_begin(loader, 0, order, 5), BASE_OK);
    assert_int_equal(data_loader_next(loader, &b), BASE_OK);
    assert_int_equal(b.count, 2);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(data_loader_next(loader, &b), BASE_ERR_INTERNAL);
        assert_int_equal(b.count, 0);
        assert_non_null(strstr(base_message(), "sample 203"));
    }
    assert_int_equal(data_loader_begin(loader, 0, order, 3), BASE_OK);
    assert_int_equal(data_loader_next(loader, &b), BASE_OK);
    assert_int_equal(b.count, 2);
    data_loader_free(loader);
}

/* Every sample is in one worker's share, whatever their number, also where some get nothing. */
static void test_shares(void **state)
{
    enum { BATCH = 5 };
    uint32_t order[TRAIN];

    data_order(*state, DATA_TRAIN, 1, 0, false, order);
    for (uint32_t size = 1; size <= 7; size++) {
        uint32_t got[TRAIN] = {0}, at[TRAIN] = {0};

        for (uint32_t rank = 0; rank < size; rank++) {
            struct data_loader *loader = NULL;
            struct data_batch b;
            uint32_t done = 0;

            assert_int_equal(data_loader_new(*state, DATA_TRAIN, BATCH,
                                             (struct data_share){rank, rank + 1, size}, 1,
                                             (struct data_augment){0}, &loader),
                             BASE_OK);
            assert_int_equal(data_loader_begin(loader, 0, order, TRAIN), BASE_OK);
            for (;;) {
                assert_int_equal(data_loader_next(loader, &b), BASE_OK);
                if (b.whole == 0)
                    break;
                assert_int_equal(b.whole, TRAIN - done < BATCH ? TRAIN - done : BATCH);
                assert_in_range(b.count, b.whole / size, (b.whole + size - 1) / size);
                for (uint32_t i = 0; i < b.count; i++) {
                    assert_int_equal(b.labels[i], data_label(*state, DATA_TRAIN, b.ids[i]));
                    got[b.ids[i]]++;
                    at[b.ids[i]] = done / BATCH;
                }
                done += b.whole;
            }
            assert_int_equal(done, TRAIN);
            data_loader_free(loader);
        }
        for (uint32_t i = 0; i < TRAIN; i++) {
            assert_int_equal(got[order[i]], 1);
            assert_int_equal(at[order[i]], i / BATCH);
        }
    }
}

/* Weights divide a batch without a gap or an overlap, each by its part; none is larger than was
 * promised. */
static void test_weighted_shares(void **state)
{
    static const uint32_t weights[] = {3, 0, 1, 7, 100};
    enum { WORKERS = sizeof weights / sizeof weights[0], TOTAL = 111 };

    (void)state;
    for (uint32_t whole = 0; whole <= 250; whole++) {
        uint32_t end = 0, sum = 0;

        for (int i = 0; i < WORKERS; i++) {
            struct data_share share = {sum, sum + weights[i], TOTAL};
            uint32_t first = 99, count = 99;

            sum += weights[i];
            data_share_of(share, whole, &first, &count);
            assert_int_equal(first, end);
            assert_true(count <= data_share_most(share, whole));
            assert_in_range(count, whole * weights[i] / TOTAL, whole * weights[i] / TOTAL + 1);
            end = first + count;
        }
        assert_int_equal(end, whole);
    }
    assert_int_equal(data_share_most((struct data_share){0}, 64), 64);
}

/* Blocks that are queued come in order, cut into batches that end with their block, and have the
 * bits of the samples of their epochs. */
static void test_queue(void **state)
{
    enum { MOST = 10 };
    static const struct {
        uint32_t epoch, from, count, batch;
    } blocks[] = {{1, 0, 23, 10}, {2, 100, 7, 7}, {1, 50, 5, 3}};
    static const uint32_t counts[] = {10, 10, 3, 7, 3, 2};
    struct data_augment augment = {.pad = 2, .flip = true};
    struct data_loader *loader, *other;
    struct data_batch batch, same;
    uint32_t ids[TRAIN];
    int n = 0;

    for (uint32_t i = 0; i < TRAIN; i++)
        ids[i] = i;
    /* A worker with a half share of batches of 20 has room for 10. */
    assert_int_equal(data_loader_new(*state, DATA_TRAIN, 2 * MOST, (struct data_share){1, 2, 2}, 5,
                                     augment, &loader),
                     BASE_OK);
    assert_int_equal(
        data_loader_new(*state, DATA_TRAIN, 1, (struct data_share){0}, 5, augment, &other),
        BASE_OK);
    assert_int_equal(data_loader_begin(loader, 0, ids, TRAIN), BASE_OK);
    assert_int_equal(data_loader_begin(loader, 0, NULL, 0), BASE_OK); /* forgets what was to come */
    for (int i = 0; i < 3; i++)
        assert_int_equal(data_loader_queue(loader, blocks[i].epoch, ids + blocks[i].from,
                                           blocks[i].count, blocks[i].batch),
                         BASE_OK);
    for (int i = 0; i < 3; i++)
        for (uint32_t at = 0; at < blocks[i].count; at += batch.count) {
            assert_int_equal(data_loader_next(loader, &batch), BASE_OK);
            assert_int_equal(batch.count, counts[n++]);
            assert_int_equal(batch.whole, batch.count);
            assert_int_equal(batch.epoch, blocks[i].epoch);
            for (uint32_t j = 0; j < batch.count; j++) {
                assert_int_equal(batch.ids[j], blocks[i].from + at + j);
                assert_int_equal(data_loader_begin(other, batch.epoch, &batch.ids[j], 1), BASE_OK);
                assert_int_equal(data_loader_next(other, &same), BASE_OK);
                assert_memory_equal(same.x, batch.x + j * SIZE, SIZE * sizeof *same.x);
            }
        }
    assert_int_equal(data_loader_next(loader, &batch), BASE_OK);
    assert_int_equal(batch.whole, 0);
    assert_int_equal(data_loader_queue(loader, 1, ids, 4, 4), BASE_OK); /* goes on after the end */
    assert_int_equal(data_loader_next(loader, &batch), BASE_OK);
    assert_int_equal(batch.count, 4);
    assert_int_equal(data_loader_queue(loader, 1, ids, 20, MOST + 1), BASE_ERR_USAGE);
    data_loader_free(loader);
    data_loader_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_is_a_permutation),
        cmocka_unit_test(test_order_depends_on_seed_and_epoch),
        cmocka_unit_test(test_balanced_windows),
        cmocka_unit_test(test_batch_size_does_not_matter),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_weighted_shares),
        cmocka_unit_test(test_normalises),
        cmocka_unit_test(test_crops_and_flips),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_errors_come_back),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
