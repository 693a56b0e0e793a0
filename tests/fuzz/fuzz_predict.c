/* covers: src/serve/handlers/json.c src/serve/handlers/raw.c src/serve/handlers/image.c */
/* SPDX-License-Identifier: MIT
 *
 * The body of a prediction; the first byte chooses its Content-Type. What is accepted is a whole
 * number of samples, of finite values.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "serve/handler.h"

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
    struct serve_samples samples;
    base_status st;

    if (count == 0)
        return 0;
    body.type = types[bytes[0] % 3];
    st = serve_read(bytes[0] == 9 ? "image_classifier" : NULL, &about, &body, &samples);
    if (st == BASE_OK && samples.n < 1)
        abort();
    for (int i = 0; st == BASE_OK && i < 4 * samples.n; i++)
        if (!isfinite(samples.x[i]))
            abort();
    base_free(samples.x);
    return 0;
}
