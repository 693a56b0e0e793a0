/* SPDX-License-Identifier: MIT
 *
 * PNG through libpng, JPEG through libjpeg. Both leave on errors by longjmp, so each decoder keeps
 * all that must survive the jump in one job struct, owned by the function that calls setjmp; that
 * function changes no local variable of its own afterwards. Thread-safe: no state but the job.
 */
#include "data/image.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>
#include <png.h>

#include "base/cursor.h"
#include "base/mem.h"

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
enum { MAX_SIDE = 256, MAX_SCANS = 10 }; /* large images only make the fuzzer slow */
#else
enum { MAX_SIDE = DATA_MAX_SIDE, MAX_SCANS = 100 };
#endif
enum { CHUNK_LIMIT = 8 << 20, MESSAGE = 256 };

/* What both decoders fill: interleaved rows (height,width,samples), turned into planes later. */
struct raster {
    int samples, height, width;
    uint8_t *rows;
    base_status st; /* why our own code left; BASE_OK: the library did, see `message` */
    char message[MESSAGE];
};

static base_status raster_init(struct raster *r, size_t samples, size_t height, size_t width)
{
    size_t size = 0;
    base_status st = BASE_OK;

    if (height == 0 || width == 0 || height > MAX_SIDE || width > MAX_SIDE)
        TRY(base_fail(BASE_ERR_DATA, "%zux%zu pixels; 1 to %d a side can be read", width, height,
                      MAX_SIDE));
    TRY(base_mul(samples * height, width, &size));
    TRY(base_tensor(size, 1, "an image", &r->rows));
    r->samples = (int)samples;
    r->height = (int)height;
    r->width = (int)width;
out:
    return st;
}

/* --- PNG --- */

struct png_job {
    struct base_cursor c;
    struct raster raster;
};

static void png_failed(png_structp png, png_const_charp message)
{
    struct png_job *job = png_get_error_ptr(png);

    snprintf(job->raster.message, sizeof job->raster.message, "%s", message);
    png_longjmp(png, 1);
}

static void png_warned(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void png_take(png_structp png, png_bytep to, size_t count)
{
    struct png_job *job = png_get_io_ptr(png);
    const uint8_t *bytes = NULL;

    if (base_cursor_skip(&job->c, count, &bytes) != BASE_OK)
        png_error(png, "ends too early");
    memcpy(to, bytes, count);
}

static void png_limits(png_structp png)
{
    png_set_user_limits(png, MAX_SIDE, MAX_SIDE);
    png_set_chunk_malloc_max(png, CHUNK_LIMIT);
    png_set_chunk_cache_max(png, 128);
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    png_set_crc_action(png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
    png_set_option(png, PNG_IGNORE_ADLER32, PNG_OPTION_ON);
#endif
}

/* May leave by longjmp at any call of libpng. */
static void png_steps(png_structp png, png_infop info, struct png_job *job)
{
    struct raster *r = &job->raster;
    int passes;

    png_limits(png);
    png_set_read_fn(png, job, png_take);
    png_read_info(png, info);
    if (png_get_color_type(png, info) == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(png);
    if (png_get_color_type(png, info) == PNG_COLOR_TYPE_GRAY)
        png_set_expand_gray_1_2_4_to_8(png);
    png_set_scale_16(png);
    png_set_strip_alpha(png);
    passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    r->st = raster_init(r, png_get_channels(png, info), png_get_image_height(png, info),
                        png_get_image_width(png, info));
    if (r->st == BASE_OK && png_get_rowbytes(png, info) != (size_t)r->samples * (size_t)r->width)
        r->st = base_fail(BASE_ERR_INTERNAL, "a PNG of %zu bytes a row, not %d samples",
                          png_get_rowbytes(png, info), r->samples * r->width);
    if (r->st != BASE_OK)
        png_error(png, "");
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < r->height; y++)
            png_read_row(png, r->rows + (size_t)y * (size_t)r->samples * (size_t)r->width, NULL);
    png_read_end(png, NULL);
}

static base_status decode_png(struct png_job *job)
{
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, job, png_failed, png_warned);
    png_infop info = png != NULL ? png_create_info_struct(png) : NULL;
    base_status st;

    if (info == NULL) {
        st = base_fail(BASE_ERR_MEMORY, "no memory to read a PNG");
    } else if (setjmp(png_jmpbuf(png)) == 0) {
        png_steps(png, info, job);
        st = BASE_OK;
    } else {
        st = job->raster.st != BASE_OK
                 ? job->raster.st
                 : base_fail(BASE_ERR_DATA, "not a sound PNG: %s", job->raster.message);
    }
    png_destroy_read_struct(&png, &info, NULL);
    return st;
}

/* --- JPEG --- */

struct jpeg_job {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf leave;
    const uint8_t *bytes;
    size_t count;
    bool inverted;    /* CMYK as Adobe writes it */
    bool header_only; /* the raster gets its shape and no rows */
    struct raster raster;
};

static void jpeg_failed(j_common_ptr common)
{
    struct jpeg_job *job = common->client_data;
    char message[JMSG_LENGTH_MAX];

    common->err->format_message(common, message);
    snprintf(job->raster.message, sizeof job->raster.message, "%s", message);
    longjmp(job->leave, 1);
}

/* libjpeg goes on after damage and paints gray; only what costs no pixels is let pass. */
static void jpeg_warned(j_common_ptr common, int level)
{
    int code = common->err->msg_code;

    if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM)
        jpeg_failed(common);
}

static void jpeg_silent(j_common_ptr common)
{
    (void)common;
}

/* A few bytes a scan can make the decoder pass over the whole image again, thousands of times. */
static void jpeg_watch(j_common_ptr common)
{
    struct jpeg_job *job = common->client_data;

    if (job->jpeg.input_scan_number > MAX_SCANS) {
        job->raster.st = base_fail(BASE_ERR_DATA, "a JPEG of more than %d scans", MAX_SCANS);
        longjmp(job->leave, 1);
    }
}

static J_COLOR_SPACE jpeg_target(const struct jpeg_decompress_struct *jpeg)
{
    switch (jpeg->jpeg_color_space) {
    case JCS_GRAYSCALE:
        return JCS_GRAYSCALE;
    case JCS_CMYK:
    case JCS_YCCK:
        return JCS_CMYK;
    default:
        return JCS_RGB;
    }
}

/* May leave by longjmp at any call of libjpeg. */
static void jpeg_steps(struct jpeg_job *job)
{
    struct jpeg_decompress_struct *jpeg = &job->jpeg;
    struct raster *r = &job->raster;

    jpeg_create_decompress(jpeg);
    jpeg->progress = &job->progress;
    jpeg_mem_src(jpeg, job->bytes, (unsigned long)job->count);
    jpeg_read_header(jpeg, TRUE);
    jpeg->out_color_space = jpeg_target(jpeg);
    job->inverted = jpeg->saw_Adobe_marker;
    if (job->header_only) {
        r->samples = jpeg->out_color_space == JCS_GRAYSCALE ? 1 : 3;
        r->height = (int)jpeg->image_height;
        r->width = (int)jpeg->image_width;
        return;
    }
    r->st = raster_init(r,
                        jpeg->out_color_space == JCS_GRAYSCALE ? 1
                        : jpeg->out_color_space == JCS_CMYK    ? 4
                                                               : 3,
                        jpeg->image_height, jpeg->image_width);
    if (r->st != BASE_OK)
        longjmp(job->leave, 1);
    jpeg_start_decompress(jpeg);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row =
            r->rows + (size_t)jpeg->output_scanline * (size_t)r->samples * (size_t)r->width;

        jpeg_read_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_decompress(jpeg);
}

static base_status decode_jpeg(struct jpeg_job *job)
{
    base_status st;

    job->jpeg.err = jpeg_std_error(&job->errors);
    job->jpeg.client_data = job;
    job->errors.error_exit = jpeg_failed;
    job->errors.emit_message = jpeg_warned;
    job->errors.output_message = jpeg_silent;
    job->progress.progress_monitor = jpeg_watch;
    if (setjmp(job->leave) == 0) {
        jpeg_steps(job);
        st = BASE_OK;
    } else {
        st = job->raster.st != BASE_OK
                 ? job->raster.st
                 : base_fail(BASE_ERR_DATA, "not a sound JPEG: %s", job->raster.message);
    }
    jpeg_destroy_decompress(&job->jpeg);
    return st;
}

/* (height,width,4) becomes (height,width,3) in the same memory. */
static void cmyk_to_rgb(struct raster *r, bool inverted)
{
    size_t count = (size_t)r->height * (size_t)r->width;

    for (size_t i = 0; i < count; i++) {
        const uint8_t *cmyk = r->rows + 4 * i;
        int k = inverted ? cmyk[3] : 255 - cmyk[3];

        for (int c = 0; c < 3; c++) {
            int ink = inverted ? cmyk[c] : 255 - cmyk[c];

            r->rows[3 * i + (size_t)c] = (uint8_t)((ink * k + 127) / 255);
        }
    }
    r->samples = 3;
}

/* --- both --- */

/* (height,width,samples) to planes. */
static base_status to_planes(const struct raster *r, struct data_image *image_p)
{
    size_t plane = (size_t)r->height * (size_t)r->width, samples = (size_t)r->samples;
    base_status st = base_tensor(plane, samples, "an image", &image_p->pixels);

    if (st != BASE_OK)
        return st;
    for (size_t c = 0; c < samples; c++)
        for (size_t i = 0; i < plane; i++)
            image_p->pixels[c * plane + i] = r->rows[i * samples + c];
    image_p->channels = r->samples;
    image_p->height = r->height;
    image_p->width = r->width;
    return BASE_OK;
}

/* The IHDR chunk, which every PNG begins with. */
static base_status probe_png(const void *bytes, size_t count, struct raster *r)
{
    base_status st = BASE_OK;
    struct base_cursor c = base_cursor_of(bytes, count);
    const uint8_t *header = NULL;

    TRY(base_prefix(base_cursor_skip(&c, 26, &header), "not a sound PNG"));
    if (memcmp(header + 12, "IHDR", 4) != 0)
        TRY(base_fail(BASE_ERR_DATA, "not a sound PNG: it does not begin with its header"));
    r->width = (int)(png_get_uint_32(header + 16) & PNG_UINT_31_MAX);
    r->height = (int)(png_get_uint_32(header + 20) & PNG_UINT_31_MAX);
    r->samples = (header[25] & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1;
out:
    return st;
}

static bool is_png(const void *bytes, size_t count)
{
    return count >= 8 && png_sig_cmp(bytes, 0, 8) == 0;
}

static bool is_jpeg(const void *bytes, size_t count)
{
    return count >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0;
}

base_status data_image_probe(const void *bytes, size_t count, struct data_image *image_p)
{
    base_status st = BASE_OK;
    struct raster r = {0};
    struct jpeg_job *jpeg = NULL;

    *image_p = (struct data_image){0};
    if (is_png(bytes, count)) {
        TRY(probe_png(bytes, count, &r));
    } else if (is_jpeg(bytes, count)) {
        jpeg = base_calloc(1, sizeof *jpeg);
        jpeg->bytes = bytes;
        jpeg->count = count;
        jpeg->header_only = true;
        TRY(decode_jpeg(jpeg));
        r = jpeg->raster;
    } else {
        TRY(base_fail(BASE_ERR_DATA, "neither PNG nor JPEG"));
    }
    if (r.height < 1 || r.width < 1 || r.height > MAX_SIDE || r.width > MAX_SIDE)
        TRY(base_fail(BASE_ERR_DATA, "%dx%d pixels; 1 to %d a side can be read", r.width, r.height,
                      MAX_SIDE));
    *image_p = (struct data_image){.channels = r.samples, .height = r.height, .width = r.width};
out:
    base_free(jpeg);
    return st;
}

base_status data_image_decode(const void *bytes, size_t count, struct data_image *image_p)
{
    base_status st = BASE_OK;
    struct png_job png = {.c = base_cursor_of(bytes, count)};
    struct jpeg_job *jpeg = NULL;

    *image_p = (struct data_image){0};
    if (is_png(bytes, count)) {
        TRY(decode_png(&png));
        TRY(to_planes(&png.raster, image_p));
    } else if (is_jpeg(bytes, count)) {
        jpeg = base_calloc(1, sizeof *jpeg);
        jpeg->bytes = bytes;
        jpeg->count = count;
        TRY(decode_jpeg(jpeg));
        if (jpeg->raster.samples == 4)
            cmyk_to_rgb(&jpeg->raster, jpeg->inverted);
        TRY(to_planes(&jpeg->raster, image_p));
    } else {
        TRY(base_fail(BASE_ERR_DATA, "neither PNG nor JPEG"));
    }
out:
    base_free(png.raster.rows);
    if (jpeg != NULL)
        base_free(jpeg->raster.rows);
    base_free(jpeg);
    return st;
}

void data_image_fini(struct data_image *image)
{
    base_free(image->pixels);
    *image = (struct data_image){0};
}

/* Luma of Rec. 601, into the first plane. */
static void to_gray(struct data_image *image)
{
    size_t plane = (size_t)image->height * (size_t)image->width;
    uint8_t *r = image->pixels, *g = r + plane, *b = g + plane;

    for (size_t i = 0; i < plane; i++)
        r[i] = (uint8_t)((299u * r[i] + 587u * g[i] + 114u * b[i] + 500u) / 1000u);
    image->channels = 1;
}

/* Where target `i` of `to` lies among `from` pixels, centre on centre, in 1/256 pixels. */
static uint32_t source_position(int i, int from, int to)
{
    int64_t at = ((int64_t)(2 * i + 1) * from - to) * 256 / (2 * to), last = (from - 1) * 256;

    return (uint32_t)(at < 0 ? 0 : at > last ? last : at);
}

/* One plane, bilinear: (from_h,from_w) to (to_h,to_w). */
static void scale(const uint8_t *from, int from_h, int from_w, uint8_t *to, int to_h, int to_w)
{
    for (int y = 0; y < to_h; y++) {
        uint32_t at_y = source_position(y, from_h, to_h), fy = at_y & 255;
        const uint8_t *above = from + (size_t)(at_y >> 8) * (size_t)from_w;
        const uint8_t *below = fy > 0 ? above + from_w : above;

        for (int x = 0; x < to_w; x++) {
            uint32_t at_x = source_position(x, from_w, to_w), fx = at_x & 255;
            uint32_t left = at_x >> 8, right = fx > 0 ? left + 1 : left;
            uint32_t up = above[left] * (256 - fx) + above[right] * fx;
            uint32_t down = below[left] * (256 - fx) + below[right] * fx;

            *to++ = (uint8_t)((up * (256 - fy) + down * fy + 32768) >> 16);
        }
    }
}

void data_image_fit(struct data_image *image, int channels, int height, int width, uint8_t *pixels)
{
    if (channels == 1 && image->channels == 3)
        to_gray(image);
    for (int c = 0; c < channels; c++) {
        size_t from = image->channels == 1 ? 0 : (size_t)c;

        scale(image->pixels + from * (size_t)image->height * (size_t)image->width, image->height,
              image->width, pixels + (size_t)c * (size_t)height * (size_t)width, height, width);
    }
}

void data_level_table(float mean, float deviation, float table[static 256])
{
    for (int level = 0; level < 256; level++)
        table[level] = ((float)level / 255.0f - mean) / deviation;
}
