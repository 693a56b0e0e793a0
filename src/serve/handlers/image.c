/* SPDX-License-Identifier: MIT
 *
 * A PNG or JPEG file, known by its first bytes whatever its Content-Type says: `curl -T` sends
 * none.
 */
#include <string.h>

#include "base/mem.h"
#include "data/image.h"
#include "model/input.h"
#include "serve/handler.h"

static bool image_takes(const struct model_about *about, const struct serve_body *body)
{
    (void)about;
    return (body->count >= 8 && memcmp(body->bytes, "\x89PNG\r\n\x1a\n", 8) == 0) ||
           (body->count >= 3 && memcmp(body->bytes, "\xff\xd8\xff", 3) == 0);
}

static base_status image_read(const struct model_about *about, const struct serve_body *body,
                              struct serve_samples *samples_p)
{
    base_status st = BASE_OK;
    struct data_image header;
    size_t pixels;

    TRY(data_image_probe(body->bytes, body->count, &header));
    pixels = (size_t)header.height * (size_t)header.width;
    if (pixels > body->max_pixels)
        TRY(base_fail(BASE_ERR_DATA, "an image of %dx%d pixels; this server takes %zu at most",
                      header.width, header.height, body->max_pixels));
    TRY(serve_samples_new(about, nn_shape_values(about->input), samples_p));
    TRY(model_input_image(about, body->bytes, body->count, samples_p->x));
out:
    return st;
}

const struct serve_handler serve_handler_image = {
    .name = "image",
    .help = "a PNG or JPEG image",
    .alias = "image_classifier",
    .takes = image_takes,
    .read = image_read,
};
