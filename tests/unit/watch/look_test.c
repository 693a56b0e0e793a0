/* SPDX-License-Identifier: MIT
 *
 * A run that is looked at while it is written: pieces of its files, cut anywhere, tell the same as
 * the whole; what has not changed is not drawn again; workers and hosts have the states that their
 * events tell; names and lines that try to leave their place do not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "watch/metrics.h"
#include "watch/parts.h"
#include "watch/screen.h"

static char folder[64];

static void append(const char *name, const char *bytes, size_t count)
{
    char *path = base_format("%s/%s", folder, name);
    FILE *file = fopen(path, "a");

    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    base_free(path);
}

static void save(const char *status)
{
    char *path = base_format("%s/run.json", folder);
    char *text = base_format("{\"schema\":1,\"status\":\"%s\",\"about\":{\"settings\":{\"model\":"
                             "\"<i>\"}}}",
                             status);

    assert_int_equal(base_file_replace(path, text, strlen(text)), BASE_OK);
    base_free(text);
    base_free(path);
}

static int make_run(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/look_test_XXXXXX");
    if (mkdtemp(folder) == NULL)
        return 1;
    save("running");
    return 0;
}

static int remove_run(void **state)
{
    (void)state;
    return base_remove_tree(folder) != BASE_OK;
}

/* Steps with a way back in their middle, and a line that is none. */
static char *made_events(void)
{
    struct base_str text = {0};

    for (int i = 1; i <= 1500; i++) {
        int step = i <= 900 ? i : i - 100;

        if (i == 901)
            base_str_add(&text, "{\"event\":\"back\",\"from\":900,\"step\":800}\nrubbish\n");
        base_str_add(&text,
                     "{\"event\":\"step\",\"step\":%d,\"loss\":%.4f,\"correct\":%d,\"samples\":8,"
                     "\"seconds\":0.25}\n",
                     step, 1.0 + i % 7, i % 8);
    }
    return base_str_take(&text);
}

static void assert_same(const struct report_story *a, const struct report_story *b)
{
    assert_int_equal(a->curve_count, b->curve_count);
    assert_int_equal(a->turn_count, b->turn_count);
    assert_int_equal(a->damaged, b->damaged);
    assert_true(a->steps == b->steps && a->seconds == b->seconds);
    for (size_t i = 0; i < a->curve_count; i++) {
        const struct report_curve *x = &a->curves[i].curve,
                                  *y = report_story_curve(b, a->curves[i].name);

        assert_non_null(y);
        assert_int_equal(x->count, y->count);
        assert_memory_equal(x->bins, y->bins, x->count * sizeof *x->bins);
    }
}

static void test_pieces(void **state)
{
    char *text = made_events();
    size_t length = strlen(text), at = 0;
    struct report_story whole = {0};
    struct watch_look look;
    uint64_t version;

    (void)state;
    assert_int_equal(watch_look_open("/nonexistent", folder, &look), BASE_OK);
    for (size_t piece = 1; at < length; piece = piece * 3 % 4999 + 1) {
        size_t count = piece < length - at ? piece : length - at;

        append("events.jsonl", text + at, count);
        at += count;
        watch_look_again(&look);
    }
    report_story_read(folder, &whole);
    assert_int_equal(whole.damaged, 1);
    assert_true(whole.steps == 1400);
    assert_non_null(report_story_curve(&whole, "step.rate"));
    assert_same(&whole, &look.story);
    assert_same(&look.story, &whole);
    version = look.version;
    watch_look_again(&look);
    assert_int_equal(look.version, version);
    save("done");
    watch_look_again(&look);
    assert_true(look.version != version && watch_look_ended(&look));
    assert_string_equal(look.story.status, "done");
    report_story_fini(&whole);
    watch_look_close(&look);
    base_free(text);
}

static const char cluster[] =
    "{\"event\":\"join\",\"time\":0.1,\"host\":0,\"name\":\"<b>\\u001b\",\"workers\":4}\n"
    "{\"event\":\"view\",\"time\":1,\"view\":1,\"members\":[2,1,3,5]}\n"
    "{\"event\":\"heartbeat\",\"time\":2,\"id\":0,\"host\":0,\"cpu\":0.5,\"memory\":5e9,\"load\":1."
    "5}\n"
    "{\"event\":\"heartbeat\",\"time\":2,\"id\":1,\"host\":0,\"cpu\":0.9,\"memory\":3e6,\"step\":7,"
    "\"step_rate\":2.5}\n"
    "{\"event\":\"heartbeat\",\"time\":2,\"id\":2,\"host\":0,\"cpu\":0.9,\"memory\":3e6,\"step\":7}"
    "\n"
    "{\"event\":\"lost\",\"time\":3,\"id\":3,\"host\":0,\"view\":1,\"reason\":\"died <b>\"}\n"
    "{\"event\":\"heartbeat\",\"time\":9,\"id\":2,\"host\":0,\"cpu\":0.8,\"memory\":4e6,\"step\":"
    "17}\n"
    "{\"event\":\"heartbeat\",\"time\":9,\"id\":4,\"host\":0,\"cpu\":0.8,\"memory\":4e6,\"step\":-"
    "1}\n"
    "{\"event\":\"lost\",\"time\":9,\"id\":\"x\"}\n";

static json_t *worker_of(const json_t *json, int id)
{
    json_t *list = json_object_get(json, "workers"), *node;
    size_t i;

    json_array_foreach(list, i, node)
    {
        if (json_integer_value(json_object_get(node, "id")) == id)
            return node;
    }
    fail_msg("no worker %d", id);
    return NULL;
}

static void assert_state(const json_t *json, int id, const char *state, int rank)
{
    const json_t *node = worker_of(json, id), *at = json_object_get(node, "rank");

    assert_string_equal(json_string_value(json_object_get(node, "state")), state);
    assert_int_equal(json_is_null(at) ? -1 : json_integer_value(at), rank);
}

static void test_states(void **state)
{
    struct watch_look look;
    int lock = open(folder, O_RDONLY | O_DIRECTORY); /* as the process that trains has it */
    const struct timespec long_ago[2] = {{.tv_sec = 1e9}, {.tv_sec = 1e9}};
    uint64_t version;
    char *path;
    json_t *json;

    (void)state;
    assert_int_equal(flock(lock, LOCK_EX), 0);
    append("cluster.jsonl", cluster, strlen(cluster));
    assert_int_equal(watch_look_open("", folder, &look), BASE_OK);
    assert_string_equal(look.status, "running");
    json = watch_look_json(&look);
    assert_state(json, 1, "silent", 1);
    assert_state(json, 2, "working", 0);
    assert_state(json, 3, "lost", 2);
    assert_state(json, 4, "starting", -1);
    assert_state(json, 5, "silent", 3); /* it never had a heartbeat */
    assert_int_equal(json_array_size(json_object_get(json, "hosts")), 1);
    json_decref(json);
    close(lock);
    watch_look_again(&look);
    assert_string_equal(look.status, "lost");
    json = watch_look_json(&look);
    assert_state(json, 2, "ended", 0);
    assert_state(json, 3, "lost", 2);
    json_decref(json);

    /* A worker may take over from a rank 0 that is lost; the run has ended when none has for long.
     */
    assert_false(watch_look_ended(&look));
    version = look.version;
    look.lost_since -= TRAIN_TAKE_OVER + 1;
    watch_look_again(&look);
    assert_true(watch_look_ended(&look) && look.version != version);
    watch_look_close(&look);
    path = base_format("%s/run.json", folder);
    assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    assert_int_equal(watch_look_open("", folder, &look), BASE_OK);
    assert_true(watch_look_ended(&look));
    watch_look_close(&look);
    base_free(path);
}

static void test_drawn(void **state)
{
    static const char step[] = "{\"event\":\"step\",\"step\":1,\"loss\":0.5,\"odd\\\"x\":1}\n";
    static const char log[] = "2026-01-01T00:00:00Z <script>\x1b[2J\xff\n";
    struct watch_look look;
    struct watch_parts parts = {0};
    struct base_str text = {0};
    char *first, *again;

    (void)state;
    append("cluster.jsonl", cluster, strlen(cluster));
    append("log-1.txt", log, strlen(log));
    assert_int_equal(watch_look_open("", folder, &look), BASE_OK);
    first = watch_parts_draw(&parts, &look);
    again = watch_parts_all(&parts, &look);
    assert_string_equal(first, again);
    assert_null(strstr(first, "<script"));
    assert_null(strstr(first, "<b>\\u"));
    assert_null(strstr(first, "died <b>"));
    assert_non_null(strstr(first, "died &lt;b&gt;"));
    assert_non_null(strstr(first, "data-worker=\\\"4\\\""));
    base_free(first);
    base_free(again);
    assert_null(watch_parts_draw(&parts, &look));
    append("events.jsonl", step, strlen(step));
    watch_look_again(&look);
    again = watch_parts_draw(&parts, &look);
    assert_non_null(strstr(again, "\"summary\":"));
    assert_null(strstr(again, "\"log\":")); /* it is as it was */
    base_free(again);
    watch_screen(&look, 60, 10, &text);
    assert_null(strchr(text.text, '\x1b'));
    assert_null(strchr(text.text, '\xff'));
    base_str_fini(&text);
    watch_metrics(&look, &text);
    assert_non_null(strstr(text.text, "\npaceline_step_loss 0.5\n"));
    assert_null(strstr(text.text, "odd"));
    assert_non_null(strstr(text.text, "paceline_workers{state=\"lost\"} 1\n"));
    base_str_fini(&text);
    watch_parts_fini(&parts);
    watch_look_close(&look);
}

static void test_no_run(void **state)
{
    struct watch_look look;

    (void)state;
    assert_int_equal(watch_look_open("/tmp", "no-such-run", &look), BASE_ERR_USAGE);
    watch_look_close(&look);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pieces, make_run, remove_run),
        cmocka_unit_test_setup_teardown(test_states, make_run, remove_run),
        cmocka_unit_test_setup_teardown(test_drawn, make_run, remove_run),
        cmocka_unit_test(test_no_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
