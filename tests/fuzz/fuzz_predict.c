/* covers: src/serve/handler.c src/serve/values.c src/serve/v2_parse.c src/serve/handlers/json.c
 * src/serve/handlers/raw.c src/serve/handlers/image.c */
/* SPDX-License-Identifier: MIT
 *
 * The body of a prediction: the first byte chooses its Content-Type, or that it is a request of
 * the Open Inference Protocol. What is accepted is a whole number of samples, of finite values.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "serve/handler.h"
#include "serve/v2_parse.h"

static char *labels[] = {"a", "b"};
static const struct model_about about = {.classes = 2,
                                         .labels = labels,
                                         .input = {.c = 1, .h = 2, .w = 2},
                                         .mean = {0.5f},
                                         .deviation = {0.25f}};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const char *const types[] = {"", "application/json", "application/octet-stream"};
    struct serve_body body = {.bytes = bytes + 1, .count = count - 1, .max_pixels = 1000};
    struct serve_samples samples = {0};
    json_t *document = NULL;
    base_status st;

    if (count == 0)
        return 0;
    if (bytes[0] % 4 == 3) {
        st = serve_v2_parse(&about, body.bytes, body.count, &document, &samples);
    } else {
        body.type = types[bytes[0] % 4];
        st = serve_read(bytes[0] % 8 == 4 ? "image_classifier" : NULL, &about, &body, &samples);
    }
    if (st == BASE_OK && samples.n < 1)
        abort();
    for (int i = 0; st == BASE_OK && i < 4 * samples.n; i++)
        if (!isfinite(samples.x[i]))
            abort();
    base_free(samples.x);
    json_decref(document);
    return 0;
}
