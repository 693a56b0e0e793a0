/* SPDX-License-Identifier: MIT */
#include "support/images.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

#include "base/mem.h"
#include "base/str.h"

uint8_t support_level(int channel, int y, int x)
{
    int level = 16 * x + 8 * y + 40 * channel;

    return (uint8_t)(level > 255 ? 255 : level);
}

static void append(png_structp png, png_bytep bytes, size_t count)
{
    base_str_append(png_get_io_ptr(png), (const char *)bytes, count);
}

static void flush(png_structp png)
{
    (void)png;
}

static int samples_of(int type)
{
    switch (type) {
    case PNG_COLOR_TYPE_RGB:
        return 3;
    case PNG_COLOR_TYPE_RGB_ALPHA:
        return 4;
    case PNG_COLOR_TYPE_GRAY_ALPHA:
        return 2;
    default:
        return 1;
    }
}

/* One row in the file's own sample size. */
static void make_row(int type, int depth, int y, int width, uint8_t *row)
{
    int samples = samples_of(type);

    memset(row, 0, (size_t)width * 8);
    for (int x = 0; x < width; x++)
        for (int s = 0; s < samples; s++) {
            int alpha = samples % 2 == 0 && s == samples - 1;
            int level = alpha ? 255 - x : support_level(s, y, x), at = x * samples + s;

            if (type == PNG_COLOR_TYPE_PALETTE)
                level = (x + y) & ((1 << depth) - 1);
            else if (depth < 8)
                level = (x + y) % 2 != 0 ? (1 << depth) - 1 : 0;
            if (depth == 16)
                memset(row + 2 * at, level, 2);
            else
                row[at * depth / 8] |= (uint8_t)(level << (8 - depth - at * depth % 8));
        }
}

size_t support_png(int type, int depth, int interlaced, int height, int width, uint8_t **bytes_p)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    struct base_str out = {0};
    uint8_t *row = base_calloc((size_t)width, 8);
    png_color palette[16];
    int passes;
    size_t count;

    for (int i = 0; i < 16; i++)
        palette[i] = (png_color){(png_byte)(i * 16), (png_byte)(255 - i * 16), (png_byte)i};
    png_set_write_fn(png, &out, append, flush);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, depth, type,
                 interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
                 PNG_FILTER_TYPE_BASE);
    if (type == PNG_COLOR_TYPE_PALETTE) {
        png_set_PLTE(png, info, palette, 1 << (depth < 4 ? depth : 4));
        png_set_tRNS(png, info, (const png_byte[]){0, 128}, 2, NULL);
    }
    png_write_info(png, info);
    passes = png_set_interlace_handling(png);
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < height; y++) {
            make_row(type, depth, y, width, row);
            png_write_row(png, row);
        }
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    base_free(row);
    count = out.length;
    *bytes_p = (uint8_t *)base_str_take(&out);
    return count;
}

size_t support_jpeg(int samples, int progressive, int height, int width, uint8_t **bytes_p)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    uint8_t *row = base_calloc((size_t)width, 4);
    unsigned long count = 0;

    *bytes_p = NULL;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, bytes_p, &count);
    jpeg.image_width = (JDIMENSION)width;
    jpeg.image_height = (JDIMENSION)height;
    jpeg.input_components = samples;
    jpeg.in_color_space = samples == 1 ? JCS_GRAYSCALE : samples == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 100, TRUE);
    jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = 1;
    if (progressive)
        jpeg_simple_progression(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++)
            for (int s = 0; s < samples; s++)
                row[x * samples + s] = s == 3 ? 255 : support_level(s, y, x);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    base_free(row);
    return count;
}
