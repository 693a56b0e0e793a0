/* SPDX-License-Identifier: MIT
 *
 * Embeddings of a user and an item. A sample is two row numbers, which floats hold exactly up to
 * 2^24; row r of a table is SIZE factors and a bias. Of rows p, b of the user and q, c of the item
 * the output is
 *
 *     b + c + <p,q>,  p (SIZE),  q (SIZE)
 *
 * so that the first value alone is a biased matrix factorisation, and the layers after it see both
 * rows. A number that is no row of its table, such as -1, is an unknown user or item: zeros.
 *
 * Gradients are zeros but for the rows of the batch. A thread adds to rows of its own, in the order
 * of the samples, so that the bits do not depend on the number of threads.
 */
#include <math.h>
#include <string.h>

#include "nn/layer.h"
#include "nn/line.h"
#include "nn/threads.h"

enum { MAX_ROWS = 1 << 24, MAX_SIZE = 4096, SIDES = 2 };
static const float START = 0.05f; /* small: an unknown row and a new one are about the same */

struct config {
    int rows[SIDES], size;
};

static base_status embed_parse(struct nn_line *line, void *config)
{
    base_status st = BASE_OK;
    struct config *c = config;

    TRY(nn_line_pair(line, "USERSxITEMS", 1, MAX_ROWS, c->rows));
    TRY(nn_line_int(line, "SIZE", 1, MAX_SIZE, &c->size));
out:
    return st;
}

static base_status embed_describe(struct nn_node *node)
{
    static const char *const names[SIDES] = {"users", "items"};
    const struct config *c = node->config;

    if (nn_shape_values(node->in) != SIDES)
        return base_fail(BASE_ERR_MODEL,
                         "embed takes a user's and an item's number, `input 2x1x1`, not %dx%dx%d",
                         node->in.c, node->in.h, node->in.w);
    node->out = (struct nn_shape){.c = 1 + SIDES * c->size, .h = 1, .w = 1, .flat = true};
    for (int side = 0; side < SIDES; side++)
        nn_node_param(node, names[side],
                      (struct nn_tensor){.order = NN_PLAIN,
                                         .rank = 2,
                                         .dims = {c->rows[side], c->size + 1, 1, 1},
                                         .bound = START,
                                         .sparse = true});
    node->flops = 2.0 * c->size + 2;
    return BASE_OK;
}

/* The row that sample j has of a table; -1: none. */
static int embed_row(const struct nn_pass *p, int j, int side)
{
    const struct config *c = p->node->config;
    const struct nn_shape in = p->node->in;
    const float number = p->x[(size_t)j * nn_shape_floats(in) + nn_shape_at(in, side, 0, 0)];

    return number > -0.5f && number < (float)c->rows[side] - 0.5f ? (int)lrintf(number) : -1;
}

static const float *embed_values(const struct nn_pass *p, int j, int side)
{
    const int row = embed_row(p, j, side);
    const size_t width = (size_t)((const struct config *)p->node->config)->size + 1;

    return row >= 0 ? p->param[side] + (size_t)row * width : NULL;
}

static base_status embed_forward(struct nn_pass *p)
{
    const int size = ((const struct config *)p->node->config)->size;
    const size_t floats = nn_shape_floats(p->node->out);

#pragma omp parallel for
    for (int j = 0; j < p->n; j++) {
        float *y = p->y + (size_t)j * floats, score = 0;

        memset(y, 0, floats * sizeof *y);
        for (int side = 0; side < SIDES; side++) {
            const float *row = embed_values(p, j, side);

            if (row == NULL)
                continue;
            memcpy(y + 1 + side * size, row, (size_t)size * sizeof *y);
            score += row[size];
        }
        for (int k = 1; k <= size; k++)
            score += y[k] * y[k + size];
        y[0] = score;
    }
    return BASE_OK;
}

/* Adds sample j's gradient to its row of a table. */
static void embed_add(const struct nn_pass *p, int j, int side, float *gradient)
{
    const int size = ((const struct config *)p->node->config)->size;
    const float *dy = p->dy + (size_t)j * nn_shape_floats(p->node->out);
    const float *own = dy + 1 + side * size, *other = embed_values(p, j, !side);

    for (int k = 0; k < size; k++)
        gradient[k] += own[k] + (other != NULL ? dy[0] * other[k] : 0);
    gradient[size] += dy[0];
}

static void embed_add_all(const struct nn_pass *p, int side)
{
    const size_t width = (size_t)((const struct config *)p->node->config)->size + 1;
    const int parts = nn_threads();

#pragma omp parallel for schedule(static, 1)
    for (int part = 0; part < parts; part++)
        for (int j = 0; j < p->n; j++) {
            const int row = embed_row(p, j, side);

            if (row >= 0 && row % parts == part)
                embed_add(p, j, side, p->dparam[side] + (size_t)row * width);
        }
}

static void embed_clear(float *gradient, size_t floats)
{
    enum { PIECE = 1 << 16 };

#pragma omp parallel for
    for (size_t from = 0; from < floats; from += PIECE)
        memset(gradient + from, 0, (floats - from < PIECE ? floats - from : PIECE) * sizeof(float));
}

static base_status embed_backward(struct nn_pass *p)
{
    for (int side = 0; side < SIDES; side++) {
        embed_clear(p->dparam[side], p->node->param[side].floats);
        embed_add_all(p, side);
    }
    if (p->dx != NULL) /* numbers of rows have no slope */
        memset(p->dx, 0, (size_t)p->n * nn_shape_floats(p->node->in) * sizeof *p->dx);
    return BASE_OK;
}

const struct nn_layer nn_layer_embed = {
    .name = "embed",
    .help = "rows of a user and an item, and the sum of their biases and product",
    .usage = "embed USERSxITEMS SIZE",
    .examples = (const char *const[]){"input 2x1x1\nembed 2x3 5\ndense 3\nmse",
                                      "input 2x1x1\nembed 1x2 8\nrelu\ndense 4\nmse",
                                      "input 2x1x1\nembed 2x2 3\nmse", NULL},
    .config_size = sizeof(struct config),
    .parse = embed_parse,
    .describe = embed_describe,
    .forward = embed_forward,
    .backward = embed_backward,
    .takes_planar = true,
    .needs_x = true,
};
