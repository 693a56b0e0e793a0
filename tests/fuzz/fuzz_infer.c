/* covers: src/serve/v2_parse.c src/serve/values.c */
/* SPDX-License-Identifier: MIT
 *
 * A request of the Open Inference Protocol. What is accepted is a whole number of samples, of
 * finite values.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "serve/v2_parse.h"

static const struct model_about about = {
    .classes = 2, .input = {.c = 1, .h = 2, .w = 2}, .mean = {0.5f}, .deviation = {0.25f}};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct serve_samples samples = {0};
    json_t *id = NULL;

    if (serve_v2_parse(&about, (const char *)bytes, count, &id, &samples) == BASE_OK) {
        if (samples.n < 1)
            abort();
        for (int i = 0; i < 4 * samples.n; i++)
            if (!isfinite(samples.x[i]))
                abort();
    }
    base_free(samples.x);
    json_decref(id);
    return 0;
}
