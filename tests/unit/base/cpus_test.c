/* SPDX-License-Identifier: MIT
 *
 * Limits of control groups, both versions, in folders that look like theirs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/cpus.h"
#include "base/mem.h"
#include "support/datafiles.h"

static char *root;

static int make_root(void **state)
{
    (void)state;
    root = support_scratch();
    return 0;
}

static int remove_root(void **state)
{
    (void)state;
    support_scratch_free(root);
    return 0;
}

static void put(const char *name, const char *text)
{
    support_write(root, name, text, strlen(text));
}

static double limit(const char *groups)
{
    char *path = base_format("%s/cgroup", root);
    double cpus;

    put("cgroup", groups);
    cpus = base_cpus_limit(path, root);
    base_free(path);
    return cpus;
}

static void test_version_2(void **state)
{
    (void)state;
    put("a/b/cpu.max", "max 100000\n");
    assert_true(isinf(limit("0::/a/b\n")));
    put("a/cpu.max", "150000 100000\n");
    assert_true(limit("0::/a/b\n") == 1.5); /* the group's own parent */
    put("a/b/cpu.max", "50000 100000\n");
    assert_true(limit("0::/a/b\n") == 0.5);
    put("cpu.max", "20000 100000\n"); /* inside a container the path leads nowhere */
    assert_true(limit("0::/elsewhere\n") == 0.2);
}

static void test_version_1(void **state)
{
    (void)state;
    put("cpu/a/cpu.cfs_quota_us", "-1\n");
    put("cpu/a/cpu.cfs_period_us", "100000\n");
    assert_true(isinf(limit("4:cpu,cpuacct:/a\n3:memory:/a\n")));
    put("cpu/a/cpu.cfs_quota_us", "300000\n");
    assert_true(limit("4:cpu,cpuacct:/a\n") == 3);
    assert_true(limit("4:cpuacct,cpu:/a\n") == 3);
    assert_true(isinf(limit("4:cpuset:/a\n5:cpuacct:/a\n")));
}

static void test_none(void **state)
{
    (void)state;
    assert_true(isinf(base_cpus_limit("/nowhere", root)));
    assert_true(isinf(limit("")));
    assert_true(isinf(limit("nonsense\n0::\n")));
    assert_int_equal(base_cpus(1), 1);
    assert_true(base_cpus(4) >= 1 && base_cpus(4) <= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_version_2, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_version_1, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_none, make_root, remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
