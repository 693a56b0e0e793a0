/* SPDX-License-Identifier: MIT
 *
 * Regions by key: the same memory for the same key, one size, gone with their view.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "cluster/regions.h"

static void test_regions(void **state)
{
    struct cluster_regions r = {0};
    struct stat file;
    int a, b, c;

    (void)state;
    assert_int_equal(cluster_regions_get(&r, "view/1/ring", 4096, &a), BASE_OK);
    assert_int_equal(cluster_regions_get(&r, "view/1/ring", 4096, &b), BASE_OK);
    assert_int_equal(a, b);
    assert_int_equal(fstat(a, &file), 0);
    assert_int_equal(file.st_size, 4096);
    assert_int_equal(cluster_regions_get(&r, "view/1/ring", 8192, &b), BASE_ERR_DATA);
    assert_int_equal(b, -1);
    assert_int_equal(cluster_regions_get(&r, "weights", 100, &c), BASE_OK);
    assert_int_equal(cluster_regions_get(&r, "view/2/ring", 8192, &b), BASE_OK);

    cluster_regions_forget(&r, 2);
    assert_int_not_equal(fstat(a, &file), 0);
    assert_int_equal(fstat(b, &file), 0);
    assert_int_equal(fstat(c, &file), 0);
    assert_int_equal(cluster_regions_get(&r, "view/1/ring", 4096, &a), BASE_ERR_PEER_LOST);
    cluster_regions_forget(&r, 1); /* a late word brings nothing back */
    assert_int_equal(cluster_regions_get(&r, "view/1/ring", 4096, &a), BASE_ERR_PEER_LOST);
    cluster_regions_fini(&r);
    assert_int_not_equal(fstat(c, &file), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_regions)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
