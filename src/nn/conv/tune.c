/* SPDX-License-Identifier: MIT */
#include "nn/conv/tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu_level.h"
#include "base/cpus.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/registry.h"
#include "base/str.h"
#include "nn/conv/trial.h"
#include "nn/threads.h"

static const struct nn_trial_effort EFFORT = {.rounds = 5, .seconds = 0.4};
static const double MARGIN = 0.97;    /* of the reference's time: what a winner must stay below */
static const double TOLERANCE = 2e-5; /* L2-relative, against the reference */
static const double PAUSE = 10;       /* seconds between lines where there is no progress line */

/* ---- one shape ---- */

/* The fastest that is exact enough. One that does not beat the reference clearly is not worth a
 * change of bits. */
static base_status choose(const struct nn_planned *layer, const struct nn_conv **conv_p)
{
    base_status st = BASE_OK;
    struct nn_trial_time times[NN_TRIAL_MOST];
    const struct nn_shape in = layer->shape.in;
    int count, best = 0;

    TRY(nn_trial(&layer->shape, layer->node, EFFORT, times, &count));
    for (int i = 1; i < count; i++) {
        if (times[i].error > TOLERANCE)
            base_warn("kernel %s is off by %.1e on a convolution of %dx%dx%d: not used",
                      times[i].conv->name, times[i].error, in.c, in.h, in.w);
        else if (times[i].seconds < times[best].seconds &&
                 times[i].seconds < MARGIN * times[0].seconds)
            best = i;
    }
    *conv_p = times[best].conv;
out:
    return st;
}

/* Seconds that the trial of a shape takes, by the estimates of its candidates. */
static double estimate(const struct nn_conv_shape *shape)
{
    double round = 0, rounds;

    for (const struct nn_conv *const *conv = nn_conv_registry(); *conv != NULL; conv++)
        if ((*conv)->cost != NULL && (*conv)->serves(shape))
            round += (*conv)->cost(shape, base_cpu_level()) / nn_threads();
    rounds = fmin(EFFORT.rounds, 1 + floor(EFFORT.seconds / fmax(round, 1e-9)));
    return (1 + rounds) * round;
}

/* ---- what is known of this machine ---- */

/* Times are of this CPU, level, number of threads and program, and the choice was between these
 * candidates: a new one is tried. */
static char *machine_of(void)
{
    struct base_str machine = {0};
    char name[128];

    base_cpu_name(name, sizeof name);
    base_str_add(&machine, "%s, %s, %d threads, %s:", name, base_cpu_level_name(base_cpu_level()),
                 nn_threads(), PACELINE_VERSION);
    for (const struct nn_conv *const *conv = nn_conv_registry(); *conv != NULL; conv++)
        base_str_add(&machine, " %s", (*conv)->name);
    return base_str_take(&machine);
}

/* The part of the cache about this machine, made if absent; a cache that does not parse is
 * replaced: it is only a memory of times. */
static json_t *open_cache(const char *path, json_t **here_p)
{
    char *machine = machine_of();
    json_t *cache = NULL;

    if (path == NULL || !base_exists(path) || base_json_load(path, 1 << 24, &cache) != BASE_OK ||
        !json_is_object(cache)) {
        json_decref(cache);
        cache = json_object();
    }
    *here_p = json_object_get(cache, machine);
    if (!json_is_object(*here_p)) {
        *here_p = json_object();
        json_object_set_new(cache, machine, *here_p);
    }
    base_free(machine);
    return cache;
}

static base_status save_cache(const char *path, const json_t *cache)
{
    base_status st = BASE_OK;
    char *text = json_dumps(cache, JSON_INDENT(1) | JSON_SORT_KEYS), *folder;
    const char *slash = strrchr(path, '/');

    folder = slash != NULL ? base_strndup(path, (size_t)(slash - path)) : base_strdup(".");
    TRY(base_make_dirs(folder));
    TRY(base_file_replace(path, text, strlen(text)));
out:
    base_free(folder);
    base_free(text);
    return st;
}

/* A remembered choice counts only while it still serves. */
static const struct nn_conv *remembered(const json_t *here, const char *key,
                                        const struct nn_conv_shape *shape)
{
    const char *name = json_string_value(json_object_get(here, key));
    const struct nn_conv *conv =
        name != NULL ? base_registry_get(name, nn_conv_registry(), nn_conv_count()) : NULL;

    return conv != NULL && conv->serves(shape) ? conv : NULL;
}

/* ---- all of them ---- */

/* How far the trials are. */
struct course {
    int shapes, tried;
    double seconds; /* that all will take, by estimate */
    double told;    /* when a line was last written */
};

/* Shapes that the memory lacks, each once. */
static struct course course_of(const struct nn_planned *layers, int count, const json_t *here)
{
    struct course c = {.told = base_now()};
    json_t *seen = json_object();

    for (int i = 0; i < count; i++) {
        char *key = nn_conv_shape_text(&layers[i].shape);

        if (json_object_get(seen, key) == NULL && remembered(here, key, &layers[i].shape) == NULL) {
            c.shapes++;
            c.seconds += estimate(&layers[i].shape);
        }
        json_object_set_new(seen, key, json_true());
        base_free(key);
    }
    json_decref(seen);
    return c;
}

static void tell(struct course *c, const struct nn_planned *layer)
{
    base_progress(false, "timing kernels: %s, %d of %d shapes done", layer->node->name, c->tried,
                  c->shapes);
    if (!base_progress_shown() && base_now() - c->told >= PAUSE) {
        c->told = base_now();
        base_info("timing kernels: %d of %d shapes done", c->tried, c->shapes);
    }
}

base_status nn_tune(struct nn_planned *layers, int count, const char *cache)
{
    base_status st = BASE_OK;
    json_t *here = NULL, *known = open_cache(cache, &here);
    struct course c = course_of(layers, count, here);
    char *key = NULL;

    if (c.shapes > 0 && !base_progress_shown())
        base_info("timing kernels of %d shape%s, about %.0f s", c.shapes, base_plural(c.shapes),
                  ceil(c.seconds));
    for (int i = 0; i < count; i++) {
        base_free(key);
        key = nn_conv_shape_text(&layers[i].shape);
        layers[i].conv = remembered(here, key, &layers[i].shape);
        if (layers[i].conv != NULL)
            continue;
        tell(&c, &layers[i]);
        TRY(choose(&layers[i], &layers[i].conv));
        json_object_set_new(here, key, json_string(layers[i].conv->name));
        c.tried++;
    }
    base_progress_clear();
    if (c.tried > 0 && cache != NULL && save_cache(cache, known) != BASE_OK)
        base_warn("kernel timings are not remembered: %s", base_message());
out:
    base_free(key);
    json_decref(known);
    return st;
}

char *nn_tune_cache(void)
{
    char *dir = base_cache_dir();
    char *cache = dir != NULL ? base_format("%s/kernels.json", dir) : NULL;

    base_free(dir);
    return cache;
}
