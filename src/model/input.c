/* SPDX-License-Identifier: MIT */
#include "model/input.h"

#include "base/mem.h"
#include "data/image.h"

base_status model_input_image(const struct model_about *about, const void *bytes, size_t count,
                              float *x)
{
    base_status st = BASE_OK;
    struct nn_shape in = about->input;
    size_t plane = (size_t)in.h * (size_t)in.w;
    struct data_image image = {0};
    uint8_t *pixels = NULL;

    TRY(base_tensor(plane, (size_t)in.c, "an image", &pixels));
    TRY(data_image_decode(bytes, count, &image));
    data_image_crop(&image, about->crop, in.h, in.w, NULL);
    data_image_fit(&image, in.c, in.h, in.w, pixels);
    for (int c = 0; c < in.c; c++) {
        float table[256];

        data_level_table(about->mean[c], about->deviation[c], table);
        for (size_t i = 0; i < plane; i++)
            x[(size_t)c * plane + i] = table[pixels[(size_t)c * plane + i]];
    }
out:
    data_image_fini(&image);
    base_free(pixels);
    return st;
}
