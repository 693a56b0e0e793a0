/* SPDX-License-Identifier: MIT
 *
 * The values of one sample (C,H,W) or of several as little-endian float32, as the network takes
 * them. Only with its Content-Type: any bytes could be such numbers. In a form that is the type of
 * every file that a client does not know, JSON among them.
 */
#include <math.h>
#include <string.h>

#include "base/cursor.h"
#include "base/mem.h"
#include "serve/handler.h"

static bool raw_takes(const struct model_about *about, const struct serve_body *body)
{
    (void)about;
    return serve_is_octets(body) && !serve_is_json(body);
}

static base_status raw_read(const struct model_about *about, const struct serve_body *body,
                            struct serve_samples *samples_p)
{
    base_status st = BASE_OK;
    struct base_cursor c = base_cursor_of(body->bytes, body->count);
    size_t values = body->count / sizeof(float);

    if (body->count % sizeof(float) != 0)
        TRY(base_fail(BASE_ERR_DATA, "%zu bytes are no float32 values", body->count));
    TRY(serve_samples_new(about, values, samples_p));
    for (size_t i = 0; i < values; i++) {
        uint32_t bits;

        TRY(base_cursor_le32(&c, &bits));
        memcpy(&samples_p->x[i], &bits, sizeof bits);
        if (!isfinite(samples_p->x[i]))
            TRY(base_fail(BASE_ERR_DATA, "value %zu is no finite number", i));
    }
out:
    return st;
}

const struct serve_handler serve_handler_raw = {
    .name = "raw",
    .help = "float32 values of type application/octet-stream",
    .takes = raw_takes,
    .read = raw_read,
};
