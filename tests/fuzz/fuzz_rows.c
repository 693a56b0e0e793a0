/* covers: src/serve/handlers/table.c */
/* SPDX-License-Identifier: MIT
 *
 * The body of a prediction by a model of tables. What is accepted is a whole number of rows, of
 * finite features, at most one of the colours set.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "serve/handler.h"

static char *labels[] = {"price"}, *colours[] = {"", "blue", "red"};
static struct data_column columns[] = {
    {.name = "size", .kind = DATA_NUMBER, .fill = 4, .mean = 2, .deviation = 0.5},
    {.name = "data", .kind = DATA_NUMBER, .deviation = 1},
    {.name = "colour", .kind = DATA_CATEGORY, .categories = colours, .category_count = 3}};
static struct data_table table = {
    .columns = columns, .column_count = 3, .features = 5, .target = {.name = "price"}};
static const struct model_about about = {
    .classes = 1, .labels = labels, .input = {.c = 5, .h = 1, .w = 1}, .table = &table};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct serve_body body = {
        .type = "application/json", .bytes = bytes, .count = count, .max_pixels = 1000};
    struct serve_samples samples;
    base_status st = serve_read(NULL, &about, &body, &samples);

    if (st == BASE_OK && samples.n < 1)
        abort();
    for (int i = 0; st == BASE_OK && i < samples.n; i++) {
        const float *x = samples.x + 5 * i;

        if (!isfinite(x[0]) || !isfinite(x[1]) || x[2] + x[3] + x[4] > 1)
            abort();
    }
    base_free(samples.x);
    return 0;
}
