/* SPDX-License-Identifier: MIT
 *
 * Synthetic image classes, computed on the fly. A class is a glyph: a 5x5 pattern of light and dark
 * strokes that sum to zero. An image is many copies of its class's glyph at random places
 * and in random polarity, a glyph that belongs to no class, and noise. Polarity makes the mean
 * image of every class flat, so a linear model learns next to nothing, while a small convolutional
 * network finds the glyphs. Integer arithmetic only: the same pixels on every machine. Reading is
 * thread-safe: a sample is a pure function of (seed, part, index).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/data_private.h"

enum {
    GLYPH = 5,
    CELLS = GLYPH * GLYPH,
    MAX_CLASSES = 256,
    MIN_SIDE = 4, /* a glyph that is larger is cut off */
    MAX_SIDE = 512,
    AREA_PER_COPY = 48, /* 17 copies in 28x28 */
    WEAKEST = 64,       /* contrast of a copy: 64 … 127 of 255 */
    TRIES = 32          /* of which the glyph least like the others is kept */
};

/* `layer` of BASE_STREAM_SYNTH */
enum { DRAW_GLYPH, DRAW_PLACES, DRAW_DISTRACTOR, DRAW_NOISE, DRAW_LABELS };

struct synthetic {
    struct data_synthetic options;
    int8_t (*glyphs)[CELLS]; /* (classes) of -1, 0, 1 */
    int32_t *labels[DATA_PARTS];
};

static bool synthetic_recognise(const char *path)
{
    size_t length = strlen("synthetic");

    return strncmp(path, "synthetic", length) == 0 && (path[length] == '\0' || path[length] == ':');
}

static base_status parse_number(const char *name, const char *value, uint64_t low, uint64_t high,
                                uint64_t *number_p)
{
    char *end = NULL;

    errno = 0;
    *number_p = strtoull(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || *number_p < low ||
        *number_p > high)
        return base_fail(BASE_ERR_DATA,
                         "synthetic: %s=%s is not a whole number from %" PRIu64 " to %" PRIu64,
                         name, value, low, high);
    return BASE_OK;
}

static base_status parse_u32(const char *name, const char *value, uint32_t low, uint32_t high,
                             uint32_t *number_p)
{
    uint64_t number = 0;
    base_status st = parse_number(name, value, low, high, &number);

    if (st == BASE_OK)
        *number_p = (uint32_t)number;
    return st;
}

/* CxHxW; cuts `value` up. */
static base_status parse_shape(char *value, struct data_synthetic *o)
{
    base_status st = BASE_OK;
    char *save = NULL;
    char *c = strtok_r(value, "x", &save), *h = strtok_r(NULL, "x", &save);
    char *w = strtok_r(NULL, "", &save);

    if (c == NULL || h == NULL || w == NULL)
        TRY(base_fail(BASE_ERR_DATA, "synthetic: shape is channels x height x width, "
                                     "e.g. shape=1x28x28"));
    TRY(parse_u32("shape (channels)", c, 1, DATA_MAX_CHANNELS, &o->channels));
    TRY(parse_u32("shape (height)", h, MIN_SIDE, MAX_SIDE, &o->height));
    TRY(parse_u32("shape (width)", w, MIN_SIDE, MAX_SIDE, &o->width));
out:
    return st;
}

static base_status parse_labels(const char *value, struct data_synthetic *o)
{
    o->shuffled = strcmp(value, "shuffled") == 0;
    if (!o->shuffled && strcmp(value, "true") != 0)
        return base_fail(BASE_ERR_DATA, "synthetic: labels=%s is neither true nor shuffled", value);
    return BASE_OK;
}

static base_status parse_option(const char *name, char *value, struct data_synthetic *o)
{
    static const char *const names[] = {"classes", "shape", "train", "test",
                                        "seed",    "noise", "labels"};

    if (strcmp(name, "classes") == 0)
        return parse_u32(name, value, 2, MAX_CLASSES, &o->classes);
    if (strcmp(name, "shape") == 0)
        return parse_shape(value, o);
    if (strcmp(name, "train") == 0)
        return parse_u32(name, value, 1, 100000000, &o->train);
    if (strcmp(name, "test") == 0)
        return parse_u32(name, value, 0, 100000000, &o->test);
    if (strcmp(name, "seed") == 0)
        return parse_number(name, value, 0, UINT64_MAX, &o->seed);
    if (strcmp(name, "noise") == 0)
        return parse_u32(name, value, 0, 255, &o->noise);
    if (strcmp(name, "labels") == 0)
        return parse_labels(value, o);
    return base_unknown(BASE_ERR_DATA, "option of synthetic", name, names,
                        sizeof names / sizeof names[0]);
}

base_status data_synthetic_parse(const char *text, struct data_synthetic *options_p)
{
    base_status st = BASE_OK;
    const char *colon = strchr(text, ':');
    char *copy = base_strdup(colon != NULL ? colon + 1 : "");
    char *save = NULL;

    *options_p = (struct data_synthetic){.classes = 10,
                                         .channels = 1,
                                         .height = 28,
                                         .width = 28,
                                         .train = 4000,
                                         .test = 1000,
                                         .noise = 12,
                                         .seed = 1};
    for (char *item = strtok_r(copy, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        char *equals = strchr(item, '=');

        if (equals == NULL)
            TRY(base_fail(BASE_ERR_DATA, "synthetic: '%s' is not name=value, e.g. classes=10",
                          item));
        *equals = '\0';
        TRY(parse_option(item, equals + 1, options_p));
    }
out:
    base_free(copy);
    return st;
}

/* Twelve light cells, twelve dark ones, one of neither. */
static void draw_glyph(const struct base_rng *rng, int8_t glyph[CELLS])
{
    uint32_t order[CELLS];

    for (uint32_t i = 0; i < CELLS; i++)
        order[i] = i;
    base_rng_shuffle(rng, order, CELLS);
    for (int i = 0; i < CELLS; i++)
        glyph[order[i]] = (int8_t)(i == CELLS - 1 ? 0 : i % 2 == 0 ? 1 : -1);
}

/* The largest agreement of `glyph` with one of the first `count`, in either polarity. */
static int likeness(const int8_t glyph[CELLS], int8_t (*glyphs)[CELLS], uint32_t count)
{
    int most = 0;

    for (uint32_t g = 0; g < count; g++) {
        int sum = 0;

        for (int i = 0; i < CELLS; i++)
            sum += glyph[i] * glyphs[g][i];
        if (abs(sum) > most)
            most = abs(sum);
    }
    return most;
}

static void draw_glyphs(struct synthetic *s)
{
    const struct data_synthetic *o = &s->options;

    s->glyphs = base_calloc(o->classes, sizeof *s->glyphs);
    for (uint32_t c = 0; c < o->classes; c++) {
        int least = CELLS + 1;

        for (uint32_t attempt = 0; attempt < TRIES; attempt++) {
            struct base_rng rng = base_rng_of(o->seed, BASE_STREAM_SYNTH, DRAW_GLYPH, attempt, c);
            int8_t glyph[CELLS];
            int like;

            draw_glyph(&rng, glyph);
            like = likeness(glyph, s->glyphs, c);
            if (like < least) {
                least = like;
                memcpy(s->glyphs[c], glyph, sizeof glyph);
            }
        }
    }
}

/* What sample `index` shows. The classes are equally frequent. */
static uint32_t class_of(const struct synthetic *s, uint32_t index)
{
    return index % s->options.classes;
}

static base_status make_labels(struct synthetic *s, enum data_part part, uint32_t count)
{
    base_status st = BASE_OK;
    struct base_rng rng =
        base_rng_of(s->options.seed, BASE_STREAM_SYNTH, DRAW_LABELS, (uint32_t)part, 0);

    TRY(base_tensor(count, sizeof(int32_t), "labels", &s->labels[part]));
    for (uint32_t i = 0; i < count; i++)
        s->labels[part][i] = (int32_t)class_of(s, i);
    if (s->options.shuffled)
        base_rng_shuffle(&rng, (uint32_t *)s->labels[part], count);
out:
    return st;
}

static void synthetic_close(void *state)
{
    struct synthetic *s = state;

    if (s == NULL)
        return;
    base_free(s->glyphs);
    base_free(s->labels[DATA_TRAIN]);
    base_free(s->labels[DATA_TEST]);
    base_free(s);
}

static base_status synthetic_open(const char *path, const struct data_options *options,
                                  struct data_source *source_p)
{
    base_status st = BASE_OK;
    struct synthetic *s = base_calloc(1, sizeof *s);
    const struct data_synthetic *o = &s->options;
    char *identity = NULL;

    (void)options;
    TRY(data_synthetic_parse(path, &s->options));
    draw_glyphs(s);
    TRY(make_labels(s, DATA_TRAIN, o->train));
    TRY(make_labels(s, DATA_TEST, o->test));
    identity =
        base_format("synthetic 1 %u %ux%ux%u %u %u %" PRIu64 " %u %d", o->classes, o->channels,
                    o->height, o->width, o->train, o->test, o->seed, o->noise, o->shuffled);
    *source_p = (struct data_source){.state = s,
                                     .channels = (int)o->channels,
                                     .height = (int)o->height,
                                     .width = (int)o->width,
                                     .classes = (int)o->classes,
                                     .count = {o->train, o->test},
                                     .labels = {s->labels[DATA_TRAIN], s->labels[DATA_TEST]},
                                     .costly = true};
    base_sha256(identity, strlen(identity), source_p->digest);
    s = NULL;
out:
    base_free(identity);
    synthetic_close(s);
    return st;
}

/* [0,limit) from a random word. */
static uint32_t below(uint32_t word, uint32_t limit)
{
    return (uint32_t)(((uint64_t)word * limit) >> 32);
}

/* Puts a glyph into all channels (C,H,W) of `canvas`, where `words` say. */
static void stamp(const struct data_synthetic *o, const int8_t glyph[CELLS],
                  const uint32_t words[4], int16_t *canvas)
{
    uint32_t rows = o->height < GLYPH ? o->height : GLYPH;
    uint32_t columns = o->width < GLYPH ? o->width : GLYPH;
    uint32_t top = below(words[0], o->height - rows + 1);
    uint32_t left = below(words[1], o->width - columns + 1);
    int sign = (words[2] & 1) != 0 ? 1 : -1;
    int contrast = WEAKEST + (int)(words[2] >> 26);

    for (uint32_t c = 0; c < o->channels; c++) {
        /* every channel has its own share of the contrast, so that glyphs have colours */
        int share = o->channels == 1 ? 255 : 128 + (int)(words[3] >> (8 * c) & 127);
        int level = sign * contrast * share / 255;
        int16_t *plane = canvas + (size_t)c * o->height * o->width;

        for (uint32_t y = 0; y < rows; y++)
            for (uint32_t x = 0; x < columns; x++)
                plane[(top + y) * o->width + left + x] = (int16_t)(level * glyph[y * GLYPH + x]);
    }
}

/* Adds noise of deviation `o->noise`: four bytes of a word sum up to nearly a normal number, of
 * mean 510 and deviation 147.8. */
static void add_noise(const struct data_synthetic *o, const struct base_rng *rng,
                      const int16_t *canvas, uint8_t *pixels)
{
    uint32_t count = o->channels * o->height * o->width;
    uint32_t words[4] = {0};

    for (uint32_t i = 0; i < count; i++) {
        uint32_t word;
        int sum, value;

        if (i % 4 == 0)
            base_rng_block(rng, i / 4, words);
        word = words[i % 4];
        sum = (int)((word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24)) - 510;
        value = 128 + canvas[i] + sum * (int)o->noise / 148;
        pixels[i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

static base_status synthetic_pixels(const void *state, enum data_part part, uint32_t index,
                                    uint8_t *pixels)
{
    base_status st = BASE_OK;
    const struct synthetic *s = state;
    const struct data_synthetic *o = &s->options;
    uint32_t area = o->height * o->width, copies = (area + AREA_PER_COPY - 1) / AREA_PER_COPY;
    struct base_rng places =
        base_rng_of(o->seed, BASE_STREAM_SYNTH, DRAW_PLACES, (uint32_t)part, index);
    struct base_rng other =
        base_rng_of(o->seed, BASE_STREAM_SYNTH, DRAW_DISTRACTOR, (uint32_t)part, index);
    struct base_rng noise =
        base_rng_of(o->seed, BASE_STREAM_SYNTH, DRAW_NOISE, (uint32_t)part, index);
    int8_t distractor[CELLS];
    int16_t *canvas = NULL;
    uint32_t words[4];

    TRY(base_tensor((size_t)area * o->channels, sizeof *canvas, "a synthetic image", &canvas));
    draw_glyph(&other, distractor);
    base_rng_block(&places, copies, words);
    stamp(o, distractor, words, canvas);
    for (uint32_t i = 0; i < copies; i++) {
        base_rng_block(&places, i, words);
        stamp(o, s->glyphs[class_of(s, index)], words, canvas);
    }
    add_noise(o, &noise, canvas, pixels);
out:
    base_free(canvas);
    return st;
}

const struct data_format data_format_synthetic = {
    .name = "synthetic",
    .help = "image classes made on the fly: synthetic[:classes=10,shape=1x28x28,train=4000,"
            "test=1000,seed=1,noise=12,labels=true|shuffled]",
    .recognise = synthetic_recognise,
    .open = synthetic_open,
    .pixels = synthetic_pixels,
    .close = synthetic_close,
};
