/* SPDX-License-Identifier: MIT
 *
 * Models and batches for tests: support/nets.h.
 */
#include "support/nets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "nn/zoo.h"

struct nn_graph *support_graph(const char *text)
{
    struct nn_graph *graph;

    if (nn_graph_new(text, "model", (struct nn_shape){0}, 0, &graph) != BASE_OK)
        fail_msg("%s", base_message());
    return graph;
}

struct nn_graph *support_zoo(const char *model)
{
    struct nn_graph *graph;
    char *text;

    if (nn_model_text(model, &text) != BASE_OK)
        fail_msg("%s", base_message());
    graph = support_graph(text);
    base_free(text);
    return graph;
}

enum { MAX_EDGES = 8 };

void support_carry(struct nn_net *left, struct nn_net *right, int n, bool back)
{
    struct nn_edge out[MAX_EDGES], in[MAX_EDGES];
    int outs = nn_net_leaving(left, out, MAX_EDGES), ins = nn_net_entering(right, in, MAX_EDGES);

    assert_int_equal(outs, ins);
    assert_in_range(outs, 1, MAX_EDGES);
    for (int i = 0; i < outs; i++) {
        size_t bytes = (size_t)n * nn_shape_floats(in[i].shape) * sizeof(float);

        assert_int_equal(nn_shape_floats(in[i].shape), nn_shape_floats(out[i].shape));
        if (back && out[i].gradients != NULL)
            memcpy(out[i].gradients, in[i].gradients, bytes);
        if (!back)
            memcpy(in[i].values, out[i].values, bytes);
    }
}

void support_near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance))
        fail_msg("%.9g and %.9g are further apart than %g", a, b, tolerance);
}

void support_fill(float *values, size_t count, uint32_t number)
{
    struct base_rng rng = base_rng_of(7, BASE_STREAM_TEST, number, 0, 0);

    for (size_t i = 0; i < count; i++)
        values[i] = 2.0f * base_rng_unit(base_rng_u32(&rng, (uint32_t)i)) - 1.0f;
}

void support_batch_init(struct support_batch *b, const struct nn_graph *graph, int n,
                        uint32_t number)
{
    size_t count = (size_t)n;
    size_t values = nn_shape_values(nn_graph_input(graph)) * count;
    struct base_rng rng = base_rng_of(8, BASE_STREAM_TEST, number, 0, 0);

    b->x = base_calloc(values, sizeof *b->x);
    b->labels = base_calloc(count, sizeof *b->labels);
    b->ids = base_calloc(count, sizeof *b->ids);
    support_fill(b->x, values, number);
    for (size_t i = 0; i < count; i++) {
        b->labels[i] =
            (int32_t)(base_rng_u32(&rng, (uint32_t)i) % (uint32_t)nn_graph_classes(graph));
        b->ids[i] = (uint32_t)i + 100;
    }
    b->batch = (struct nn_batch){
        .n = n,
        .x = b->x,
        .samples = {.labels = b->labels, .ids = b->ids, .epoch = 1, .seed = 3},
    };
}

void support_batch_fini(struct support_batch *b)
{
    base_free(b->x);
    base_free(b->labels);
    base_free(b->ids);
}
