/* SPDX-License-Identifier: MIT
 *
 * Pages: numbers as people write them, names that try to leave their place, runs without steps,
 * results or events, and a story of events with losses, ways back and lines that are none.
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

#include "base/file.h"
#include "base/mem.h"
#include "report/html.h"

static void assert_number(double value, int digits, const char *want)
{
    char text[HTML_NUMBER];

    html_number(value, digits, text);
    assert_string_equal(text, want);
}

static void test_numbers(void **state)
{
    char text[HTML_NUMBER];

    (void)state;
    assert_number(0, 0, "0");
    assert_number(999, 0, "999");
    assert_number(1000, 0, "1,000");
    assert_number(-1234567, 0, "-1,234,567");
    assert_number(1234.5678, 4, "1,234.5678");
    assert_number(0.00001, 4, "1e-05");
    assert_number(0, 4, "0.0000");
    assert_number(999999999999999, 0, "999,999,999,999,999");
    assert_number(1e300, 0, "1e+300");
    assert_number(NAN, 2, "–");
    html_duration(0.0123, text);
    assert_string_equal(text, "12.3 ms");
    html_duration(3600, text);
    assert_string_equal(text, "60.0 min");
    html_duration(NAN, text);
    assert_string_equal(text, "–");
}

static char *folder_with(const char *events, const char *cluster)
{
    char *folder = base_strdup("/tmp/page_test_XXXXXX"), *path;

    assert_non_null(mkdtemp(folder));
    path = base_format("%s/events.jsonl", folder);
    if (events != NULL)
        assert_int_equal(base_file_replace(path, events, strlen(events)), BASE_OK);
    base_free(path);
    path = base_format("%s/cluster.jsonl", folder);
    if (cluster != NULL)
        assert_int_equal(base_file_replace(path, cluster, strlen(cluster)), BASE_OK);
    base_free(path);
    return folder;
}

static void remove_folder(char *folder)
{
    assert_int_equal(base_remove_tree(folder), BASE_OK);
    base_free(folder);
}

static const char events[] =
    "{\"event\":\"start\",\"step\":0,\"threads\":1,\"kernels\":\"conv1=direct\"}\n"
    "{\"event\":\"view\",\"view\":1,\"members\":[1,2],\"step\":0}\n"
    "{\"event\":\"step\",\"step\":1,\"loss\":4,\"correct\":1,\"samples\":4,\"seconds\":0.5}\n"
    "{\"event\":\"step\",\"step\":2,\"loss\":3,\"correct\":2,\"samples\":4,\"seconds\":0.5}\n"
    "rubbish\n"
    "{\"event\":\"step\",\"step\":3,\"loss\":9,\"correct\":0,\"samples\":4,\"seconds\":0.5}\n"
    "{\"event\":\"view\",\"view\":2,\"members\":[1,3,4],\"step\":2}\n"
    "{\"event\":\"step\",\"step\":3,\"loss\":2,\"correct\":3,\"samples\":4,\"seconds\":0.5}\n"
    "{\"event\":\"epoch\",\"epoch\":1,\"step\":3,\"loss\":3,\"test_accuracy\":0.5}\n"
    "{\"event\":\"dropped\",\"count\":7}\n{\"event\":\"ste";
static const char cluster[] =
    "{\"event\":\"view\",\"view\":1,\"members\":[1,2],\"time\":1}\n"
    "{\"event\":\"heartbeat\",\"id\":1,\"host\":0,\"cpu\":0.5,\"memory\":1e6,\"time\":2}\n"
    "{\"event\":\"lost\",\"id\":2,\"host\":0,\"view\":1,\"reason\":\"<died>\",\"time\":9}\n"
    "{\"event\":\"succession\",\"host\":1,\"time\":0.125}\n"
    "{\"event\":\"view\",\"view\":2,\"members\":[1,3],\"time\":0.25}\n";

static void test_story(void **state)
{
    char *folder = folder_with(events, cluster);
    struct report_story *s = base_calloc(1, sizeof *s);
    const struct report_curve *c;

    (void)state;
    report_story_read(folder, s);
    assert_true(s->has_events && s->steps == 3 && s->seconds == 2);
    assert_int_equal(s->damaged, 1);
    assert_int_equal(s->dropped, 7);
    assert_string_equal(s->kernels, "conv1=direct");
    c = report_story_curve(s, "step.loss");
    assert_non_null(c);
    assert_int_equal(c->count, 3);
    assert_true(c->bins[2].y == 2 && c->bins[2].time == 2); /* the second one of step 3 */
    c = report_story_curve(s, "step.accuracy");
    assert_true(c != NULL && c->count == 3 && c->bins[2].y == 0.75);
    assert_int_equal(s->turn_count, 1);
    assert_true(s->turns[0].step == 2);
    assert_string_equal(s->turns[0].text, "lost worker 2, new worker 3, 4");
    assert_true(fabs(report_story_epoch_of(s, 1.5) - 0.5) < 1e-12);
    assert_true(fabs(report_story_epoch_of(s, 6) - 2) < 1e-12);
    assert_int_equal(s->node_count, 3);
    assert_string_equal(s->nodes[1].fate, "<died>");
    assert_true(s->nodes[1].from == 1 && s->nodes[1].to == 9);
    assert_true(s->nodes[2].from == 9.25); /* another coordinator's clock */
    report_story_fini(s);
    base_free(s);
    remove_folder(folder);
}

/* A resumed run numbers its workers from 1 again; they are others. A step of no samples has no
 * figures. */
static void test_resumed(void **state)
{
    char *folder =
        folder_with("{\"event\":\"start\",\"step\":0}\n"
                    "{\"event\":\"step\",\"step\":1,\"loss\":4,\"samples\":4,\"seconds\":0.5}\n"
                    "{\"event\":\"step\",\"step\":2,\"loss\":0,\"samples\":0,\"seconds\":0.5}\n"
                    "{\"event\":\"dropped\",\"count\":1e300}\n"
                    "{\"event\":\"anomaly\",\"step\":2,\"worker\":3,\"slow\":true,"
                    "\"cause\":\"cpu-quota\"}\n"
                    "{\"event\":\"resume\",\"step\":2}\n",
                    "{\"event\":\"view\",\"view\":1,\"members\":[1,2],\"time\":1}\n"
                    "{\"event\":\"lost\",\"id\":2,\"host\":0,\"reason\":\"died\",\"time\":9}\n"
                    "{\"event\":\"join\",\"host\":0,\"time\":0.25}\n"
                    "{\"event\":\"view\",\"view\":1,\"members\":[1,2],\"time\":1}\n"
                    "{\"event\":\"exit\",\"id\":2,\"host\":0,\"time\":3}\n");
    struct report_story *s = base_calloc(1, sizeof *s);

    (void)state;
    report_story_read(folder, s);
    assert_true(s->dropped == (size_t)1 << 53);
    assert_true(s->resumed && s->steps == 2 && s->seconds == 1);
    assert_string_equal(s->turns[0].text, "worker 3 slow: cpu-quota");
    assert_int_equal(report_story_curve(s, "step.loss")->count, 1);
    assert_int_equal(s->node_count, 5);
    assert_true(s->nodes[0].session == 0 && s->nodes[0].from == 1 && s->nodes[0].to == 9);
    assert_string_equal(s->nodes[1].fate, "died");
    assert_true(s->nodes[2].session == 1 && s->nodes[2].id == 0); /* the host */
    assert_true(s->nodes[3].session == 1 && s->nodes[3].id == 1 && s->nodes[3].from == 10);
    assert_true(isnan(s->nodes[3].to));
    assert_true(s->nodes[4].to == 12 && s->nodes[4].fate == NULL);
    report_story_fini(s);
    base_free(s);
    remove_folder(folder);
}

static void put_page(struct report_page_run *run, struct base_str *html)
{
    report_page(&(struct report_page){.runs = run, .count = 1, .made = "<today>"}, html);
    assert_null(strstr(html->text, "<script"));
    assert_null(strstr(html->text, "<b onx"));
    assert_null(strstr(html->text, "<died>"));
    assert_null(strstr(html->text, "<today>"));
    assert_null(strstr(html->text, "nan"));
}

static void test_hostile_names(void **state)
{
    static const char evil[] = "</title><script>x()</script>\"<b onx='";
    char *folder = folder_with(events, cluster);
    struct report_page_run *run = base_calloc(1, sizeof *run);
    struct base_str html = {0};
    json_t *json = json_pack(
        "{s:{s:s, s:{s:s, s:s, s:[s]}}, s:[{s:i, s:f}], s:{s:s}, s:{s:s, s:f, s:{s:s}, "
        "s:{s:f, s:[{s:s}, {s:s}], s:[[i, i], [i, i]]}, s:[{s:f}]}}",
        "about", "kernels", "a=<script>", "settings", "model", evil, "data", evil, evil, evil,
        "epochs", evil, 1, "loss", 0.5, "error", "message", evil, "result", "strategy", evil,
        "workers", 2.0, "figures", evil, evil, "test", "accuracy", 0.5, "per_class", "name", evil,
        "name", evil, "confusion", 1, 2, 3, 4, "ranks", "compute", 1.0);

    (void)state;
    assert_non_null(json);
    run->story.name = evil;
    run->story.status = evil;
    run->story.json = json;
    run->trace = base_strdup("</title><script>x()#?%\"<b onx='");
    report_story_read(folder, &run->story);
    put_page(run, &html);
    assert_non_null(strstr(html.text, "The run failed: &lt;/title&gt;"));
    assert_non_null(strstr(html.text, "1 line of the events cannot be read"));
    assert_null(strstr(html.text, "data-card=\"cpu\"")); /* one heartbeat is no curve */
    assert_non_null(strstr(html.text, "<a href=\"&lt;/title&gt;&lt;script&gt;x()%23%3F%25"));
    base_str_fini(&html);
    report_story_fini(&run->story);
    base_free(run->trace);
    base_free(run);
    json_decref(json);
    remove_folder(folder);
}

/* run.json may be of any shape. */
static void test_little(void **state)
{
    static const char *const texts[] = {
        "{}", "{\"about\":3,\"result\":[],\"epochs\":{}}",
        "{\"epochs\":[1,{}],\"result\":{\"ranks\":[1,2],\"test\":{\"confusion\":[1,[]],\"per_"
        "class\":7}}}",
        "{\"launch\":{\"workers\":1e300,\"hosts\":1e300},\"result\":{\"workers\":1e300,\"epochs\":"
        "1e300,\"threads\":-1e300,\"hosts\":1}}",
        "{\"about\":{\"input\":[],\"kernels\":\"  =  x\",\"settings\":{\"lr\":[{}]}}}"};
    static const char *const event_texts[] = {NULL, "", "x\n",
                                              "{\"event\":\"step\"}\n{\"event\":\"view\"}\n"};

    (void)state;
    for (size_t i = 0; i < 20; i++) {
        char *folder = folder_with(event_texts[i % 4], event_texts[i % 4]);
        struct report_page_run *run = base_calloc(1, sizeof *run);
        struct base_str html = {0};
        json_t *json = json_loads(texts[i / 4], 0, NULL);

        run->story.name = "little";
        run->story.status = "running";
        run->story.json = json;
        report_story_read(folder, &run->story);
        put_page(run, &html);
        assert_non_null(strstr(html.text, "The run is under way"));
        assert_non_null(strstr(html.text, i % 4 == 0 ? "no events.jsonl" : "has made no step yet"));
        base_str_fini(&html);
        report_story_fini(&run->story);
        base_free(run);
        json_decref(json);
        remove_folder(folder);
    }
}

/* A list of zeros in place of a matrix: what is visited is what the file has. A square of this side
 * would take minutes, longer than the tests may. */
static void test_flat_confusion(void **state)
{
    struct report_page_run *run = base_calloc(1, sizeof *run);
    json_t *confusion = json_array(), *json;
    struct base_str html = {0};

    (void)state;
    for (int i = 0; i < 500000; i++)
        json_array_append_new(confusion, json_integer(0));
    /* One row in it has cells: 7 of class 41 were taken for class 2. */
    json_array_set_new(confusion, 41, json_pack("[i, i, i]", 0, 0, 7));
    json = json_pack("{s:{s:{s:o}}}", "result", "test", "confusion", confusion);
    run->story.name = "flat";
    run->story.status = "done";
    run->story.json = json;
    put_page(run, &html);
    assert_non_null(strstr(html.text, "<tr><td>?</td><td>?</td><td>7</td></tr>"));
    base_str_fini(&html);
    base_free(run);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_story),
        cmocka_unit_test(test_resumed), cmocka_unit_test(test_hostile_names),
        cmocka_unit_test(test_little),  cmocka_unit_test(test_flat_confusion),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
