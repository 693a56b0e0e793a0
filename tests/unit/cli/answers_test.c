/* SPDX-License-Identifier: MIT
 *
 * What `paceline predict` prints, byte by byte: names that need quotes, labels that are not known,
 * bad samples; and which answers are the worst.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "cli/answers.h"
#include "support/nets.h"

static char *labels[] = {"a", "b, \"c\"", "d"};

/* Opened by cli_answers, with a stream in memory. */
struct printed {
    struct model model;
    struct cli_answers answers;
    char *text;
    size_t count;
};

static void printed_init(struct printed *p, const struct cli_answers_form *form, const char *loss)
{
    char *text = base_format("input 4x1x1\nclasses 3\ndense 3\n%s\n", loss);

    *p = (struct printed){.model = {.about = {.labels = labels, .classes = 3}}};
    p->model.graph = support_graph(text);
    p->answers = (struct cli_answers){
        .form = form, .model = &p->model, .out = open_memstream(&p->text, &p->count), .top = 2};
    base_free(text);
}

static void assert_printed(struct printed *p, const char *expected)
{
    fclose(p->answers.out);
    assert_string_equal(p->text, expected);
    free(p->text);
    nn_graph_free(p->model.graph);
}

static const struct model_answer known = {.name = "x.png",
                                          .label = 2,
                                          .loss = 0.5,
                                          .top = 2,
                                          .classes = (const int[]){1, 0},
                                          .scores = (const float[]){0.75f, 0.25f}};
static const struct model_answer unknown = {.name = "say \"hi\",\nnow",
                                            .label = DATA_NO_LABEL,
                                            .loss = NAN,
                                            .top = 2,
                                            .classes = (const int[]){0, 2},
                                            .scores = (const float[]){1.0f, 0.0f}};
static const struct model_answer bad = {
    .name = "y.png", .label = 0, .loss = NAN, .top = 2, .bad = "y.png: ends too early"};

static void write_three(struct printed *p)
{
    cli_answers_write(&p->answers, &known);
    cli_answers_write(&p->answers, &unknown);
    cli_answers_write(&p->answers, &bad);
}

static void test_text(void **state)
{
    struct printed p;

    (void)state;
    printed_init(&p, &cli_answers_text, "softmax");
    cli_answers_begin(&p.answers, NULL);
    write_three(&p);
    cli_answers_end(&p.answers, NULL);
    assert_printed(&p, "x.png: b, \"c\" 75.00 %, a 25.00 % (label d, loss 0.5000)\n"
                       "say \"hi\",?now: a 100.00 %, d 0.00 %\n");
    printed_init(&p, &cli_answers_text, "mse"); /* not of a hundred */
    cli_answers_write(&p.answers, &unknown);
    assert_printed(&p, "say \"hi\",?now: a 1.0000, d 0.0000\n");
}

static void test_csv(void **state)
{
    struct printed p;

    (void)state;
    printed_init(&p, &cli_answers_csv, "softmax");
    cli_answers_begin(&p.answers, NULL);
    write_three(&p);
    cli_answers_end(&p.answers, NULL);
    assert_printed(&p, "file,label,loss,class,probability,class_2,probability_2\n"
                       "x.png,d,0.5,\"b, \"\"c\"\"\",0.75,a,0.25\n"
                       "\"say \"\"hi\"\",\nnow\",,,a,1,d,0\n");
    printed_init(&p, &cli_answers_csv, "mse");
    cli_answers_begin(&p.answers, NULL);
    assert_printed(&p, "file,label,loss,class,score,class_2,score_2\n");
}

static void test_json(void **state)
{
    struct printed p;
    json_t *head = json_pack("{s:i}", "schema", 1), *tail = json_pack("{s:i}", "bad", 1);

    (void)state;
    printed_init(&p, &cli_answers_json, "softmax");
    cli_answers_begin(&p.answers, head);
    write_three(&p);
    cli_answers_end(&p.answers, tail);
    assert_printed(
        &p,
        "{\"schema\":1,\"predictions\":["
        "{\"file\":\"x.png\",\"label\":\"d\",\"loss\":0.5,\"classes\":["
        "{\"class\":\"b, \\\"c\\\"\",\"probability\":0.75},"
        "{\"class\":\"a\",\"probability\":0.25}]},"
        "{\"file\":\"say \\\"hi\\\",\\nnow\",\"classes\":[{\"class\":\"a\",\"probability\":1.0},"
        "{\"class\":\"d\",\"probability\":0.0}]},"
        "{\"file\":\"y.png\",\"label\":\"a\",\"error\":\"y.png: ends too early\"}],"
        "\"bad\":1}\n");
    printed_init(&p, &cli_answers_json, "mse"); /* and none at all */
    cli_answers_begin(&p.answers, head);
    cli_answers_end(&p.answers, tail);
    assert_printed(&p, "{\"schema\":1,\"predictions\":[],\"bad\":1}\n");
    json_decref(head);
    json_decref(tail);
}

/* Losses 0 … 96 in a mixed order, each twice: the largest, and of equals the first. */
static void test_worst(void **state)
{
    struct printed p;
    struct cli_worst worst = {0};

    (void)state;
    cli_worst_fini(&worst);
    cli_worst_init(&worst, 3);
    for (int i = 0; i < 194; i++) {
        struct model_answer answer = known;
        char *name = base_format("%d", i);

        answer.name = name;
        answer.loss = i * 35 % 97;
        cli_worst_add(&worst, &answer);
        base_free(name);
        cli_worst_add(&worst, &bad);
        cli_worst_add(&worst, &unknown);
    }
    printed_init(&p, &cli_answers_csv, "softmax");
    cli_worst_write(&worst, &p.answers);
    assert_int_equal(p.answers.written, 3);
    assert_printed(&p,
                   "36,d,96,\"b, \"\"c\"\"\",0.75,a,0.25\n133,d,96,\"b, \"\"c\"\"\",0.75,a,0.25\n"
                   "72,d,95,\"b, \"\"c\"\"\",0.75,a,0.25\n");
    cli_worst_fini(&worst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_worst),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
