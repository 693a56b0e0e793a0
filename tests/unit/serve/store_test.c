/* SPDX-License-Identifier: MIT
 *
 * The model store: what lies in it can be loaded, and nothing else, whatever the name says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "serve/store.h"
#include "support/datafiles.h"
#include "support/trained.h"

static char *scratch;
static struct serve_store *store;

static char *in_scratch(const char *name)
{
    return base_format("%s/%s", scratch, name);
}

/* SCRATCH/outside is a checkpoint, SCRATCH/store the store. */
static int make_store(void **state)
{
    char *path;

    (void)state;
    scratch = support_scratch();
    support_trained_save(path = in_scratch("outside/checkpoints"), 1, NULL, NULL);
    base_free(path);
    support_trained_save(path = in_scratch("store/good/checkpoints"), 3, NULL, NULL);
    base_free(path);
    support_trained_save(path = in_scratch("store/deep/er/checkpoints"), 4, NULL, NULL);
    base_free(path);
    support_write(scratch, "store/file", "x", 1);
    support_write(scratch, "store/empty/readme", "x", 1);
    assert_int_equal(serve_store_open(path = in_scratch("store"), &store), BASE_OK);
    base_free(path);
    return 0;
}

static int remove_store(void **state)
{
    (void)state;
    serve_store_close(store);
    support_scratch_free(scratch);
    return 0;
}

static void link_in_store(const char *target, const char *name)
{
    char *path = base_format("%s/store/%s", scratch, name);

    assert_int_equal(symlink(target, path), 0);
    base_free(path);
}

static void assert_fault(const char *name, enum serve_store_fault fault, const char *says)
{
    struct serve_loaded *loaded;

    assert_int_equal(serve_store_load(store, name, 1, &loaded), fault);
    assert_null(loaded);
    if (strstr(base_message(), says) == NULL)
        fail_msg("%s: '%s' lacks '%s'", name, base_message(), says);
    assert_null(strstr(base_message(), "/proc/"));
}

static void test_good(void **state)
{
    struct serve_loaded *loaded;

    (void)state;
    assert_int_equal(serve_store_load(store, "good", 2, &loaded), SERVE_STORE_FINE);
    assert_int_equal(loaded->model.checkpoint.step, 3);
    assert_non_null(strstr(loaded->model.checkpoint.path, "store/good/checkpoints/step-3"));
    assert_true(loaded->named);
    serve_loaded_unref(loaded);
    assert_int_equal(serve_store_load(store, "deep/er", 1, &loaded), SERVE_STORE_FINE);
    serve_loaded_unref(loaded);
    link_in_store("good", "alias"); /* a link that stays inside is fine */
    assert_int_equal(serve_store_load(store, "alias", 1, &loaded), SERVE_STORE_FINE);
    serve_loaded_unref(loaded);
}

static void test_outside(void **state)
{
    char *absolute = in_scratch("outside");

    (void)state;
    assert_fault("../outside", SERVE_STORE_OUTSIDE, "leads out");
    assert_fault("good/../../outside", SERVE_STORE_OUTSIDE, "leads out");
    assert_fault(absolute, SERVE_STORE_OUTSIDE, "leads out");
    link_in_store("../outside", "link");
    assert_fault("link", SERVE_STORE_OUTSIDE, "leads out");
    link_in_store(absolute, "absolute");
    assert_fault("absolute", SERVE_STORE_OUTSIDE, "leads out");
    link_in_store("/proc/self/cwd", "magic");
    assert_fault("magic", SERVE_STORE_OUTSIDE, "leads out");
    link_in_store("loop", "loop");
    assert_fault("loop", SERVE_STORE_OUTSIDE, "leads out");
    base_free(absolute);
}

static void test_url(void **state)
{
    (void)state;
    assert_fault("http://127.0.0.1/model.mar", SERVE_STORE_URL, "never from a URL");
    assert_fault("https://127.0.0.1/model.mar", SERVE_STORE_URL, "never from a URL");
    assert_fault("file:///etc/passwd", SERVE_STORE_URL, "never from a URL");
    assert_fault("s3://bucket/model.mar", SERVE_STORE_URL, "never from a URL");
}

static void test_bad(void **state)
{
    (void)state;
    assert_fault("nothing", SERVE_STORE_ABSENT, "not found in model store");
    assert_fault("", SERVE_STORE_ABSENT, "not found in model store");
    assert_fault("file", SERVE_STORE_ABSENT, "not found in model store");
    assert_fault("empty", SERVE_STORE_BAD, "store/empty");
    link_in_store("/etc/passwd", "deep/er/extra");
    assert_fault("deep/er", SERVE_STORE_BAD, "symbolic link");
}

static void test_no_store(void **state)
{
    struct serve_store *none;
    char *file = in_scratch("store/file");

    (void)state;
    assert_int_equal(serve_store_open("/nowhere", &none), BASE_ERR_USAGE);
    assert_int_equal(serve_store_open(file, &none), BASE_ERR_USAGE);
    assert_null(none);
    serve_store_close(NULL);
    base_free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good), cmocka_unit_test(test_outside),  cmocka_unit_test(test_url),
        cmocka_unit_test(test_bad),  cmocka_unit_test(test_no_store),
    };

    return cmocka_run_group_tests(tests, make_store, remove_store);
}
