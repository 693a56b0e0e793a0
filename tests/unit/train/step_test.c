/* SPDX-License-Identifier: MIT
 *
 * A training step allocates nothing. The allocator's entry points are taken over by this program
 * and counted. Sanitizers bring allocators of their own, so there the counting is left out, and
 * oneDNN allocates while it runs, so the kernels are our own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <cmocka.h>

#include "train/measure.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { COUNTED = 0 };
static size_t calls;
#else
enum { COUNTED = 1 };
static _Atomic size_t calls;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
    calls++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    calls++;
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    calls++;
    return __libc_realloc(old, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    calls++;
    *memory = __libc_memalign(alignment, size);
    return *memory != NULL ? 0 : ENOMEM;
}
#endif

static void steps_without_allocation(const char *model, const char *kernels)
{
    struct train_measure_setup setup = {
        .model = model, .batch = 8, .threads = 2, .kernels = kernels};
    struct train_measure *m = NULL;
    double seconds, loss = 0, first = 0;
    size_t before;

    assert_int_equal(train_measure_new(&setup, &m), BASE_OK);
    assert_true(!COUNTED || calls > 0); /* the counting works */
    for (int i = 0; i < 2; i++)
        assert_int_equal(train_measure_step(m, &seconds, &first), BASE_OK);
    before = calls;
    for (int i = 0; i < 10; i++)
        assert_int_equal(train_measure_step(m, &seconds, &loss), BASE_OK);
    assert_int_equal(calls, before);
    assert_true(isfinite(loss) && loss < first); /* the same batch again and again is learnt */
    train_measure_free(m);
}

static void test_cnn(void **state)
{
    (void)state;
    steps_without_allocation("mnist-cnn", "conv1=direct conv2=winograd4");
}

static void test_vgg(void **state)
{
    (void)state;
    steps_without_allocation("vgg11", "features.0=direct features.4=winograd4 "
                                      "features.8=winograd4 features.11=winograd2 "
                                      "features.15=winograd4 features.18=winograd2 "
                                      "features.22=toeplitz2 features.25=toeplitz2");
}

static void test_mlp(void **state)
{
    (void)state;
    steps_without_allocation("mlp:32x2", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cnn),
        cmocka_unit_test(test_vgg),
        cmocka_unit_test(test_mlp),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
