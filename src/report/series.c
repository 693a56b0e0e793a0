/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "report/story.h"

double report_story_epoch_of(const struct report_story *story, double step)
{
    const struct report_curve *epochs = report_story_curve(story, "epoch.epoch");
    double from_step = 0, from_epoch = 0, slope = NAN;

    for (size_t i = 0; epochs != NULL && i < epochs->count; i++) {
        const struct report_bin *bin = &epochs->bins[i];
        double at = bin->x / (double)bin->count, epoch = bin->y / (double)bin->count;

        if (at > from_step)
            slope = (epoch - from_epoch) / (at - from_step);
        if (step <= at)
            break;
        from_step = at;
        from_epoch = epoch;
    }
    return from_epoch + slope * (step - from_step);
}

static double x_of_bin(const struct report_story *story, const struct report_bin *bin,
                       enum report_x x)
{
    double count = (double)bin->count;

    if (x == REPORT_TIME)
        return bin->time / count;
    return x == REPORT_STEP ? bin->x / count : report_story_epoch_of(story, bin->x / count);
}

static struct report_series *more(struct report_lines *lines, size_t count, char *name)
{
    struct report_series *s;

    lines->series = base_realloc(lines->series, lines->count + 1, sizeof *lines->series);
    s = &lines->series[lines->count++];
    *s = (struct report_series){.name = name,
                                .x = base_calloc(count + 1, sizeof(double)),
                                .y = base_calloc(count + 1, sizeof(double)),
                                .count = count};
    return s;
}

/* Series are const for those who draw them; these are ours. */
static double *own(const double *values)
{
    return (double *)(uintptr_t)values;
}

static void add(struct report_lines *lines, const struct report_story *story,
                const struct report_curve *curve, enum report_x x, char *name, bool band)
{
    struct report_series *s = more(lines, curve->count, name);

    if (band && curve->per_bin > 1) {
        s->low = base_calloc(curve->count + 1, sizeof(double));
        s->high = base_calloc(curve->count + 1, sizeof(double));
    }
    for (size_t i = 0; i < curve->count; i++) {
        const struct report_bin *bin = &curve->bins[i];

        own(s->x)[i] = x_of_bin(story, bin, x);
        own(s->y)[i] = bin->y / (double)bin->count;
        if (s->low != NULL) {
            own(s->low)[i] = bin->low;
            own(s->high)[i] = bin->high;
        }
    }
}

void report_lines_add_curve(struct report_lines *lines, const struct report_curve *curve,
                            const char *name, double scale)
{
    struct report_series *s = more(lines, curve->count, base_strdup(name));

    for (size_t i = 0; i < curve->count; i++) {
        own(s->x)[i] = curve->bins[i].time / (double)curve->bins[i].count;
        own(s->y)[i] = scale * curve->bins[i].y / (double)curve->bins[i].count;
    }
}

static char *joined(const char *prefix, const char *name)
{
    if (prefix == NULL || name[0] == '\0')
        return base_strdup(prefix != NULL ? prefix : name);
    return base_format("%s, %s", prefix, name);
}

void report_lines_add(struct report_lines *lines, const struct report_story *story,
                      const char *what, enum report_x x, const char *prefix, bool band)
{
    static const struct {
        const char *before, *name;
    } forms[] = {{"step.", "train"},      {"epoch.", "train"}, {"epoch.validation_", "validation"},
                 {"epoch.test_", "test"}, {"round.", "round"}, {"", ""}};
    bool trained = false;

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char *name = base_format("%s%s", forms[i].before, what);
        const struct report_curve *curve = report_story_curve(story, name);
        bool train = strcmp(forms[i].name, "train") == 0;

        if (curve != NULL && curve->count > 0 && !(train && trained)) {
            add(lines, story, curve, x, joined(prefix, forms[i].name), band && i == 0);
            trained |= train;
        }
        base_free(name);
    }
}

void report_lines_fini(struct report_lines *lines)
{
    for (size_t i = 0; i < lines->count; i++) {
        const struct report_series *s = &lines->series[i];

        base_free((char *)(uintptr_t)s->name);
        base_free(own(s->x));
        base_free(own(s->y));
        base_free(own(s->low));
        base_free(own(s->high));
    }
    base_free(lines->series);
    *lines = (struct report_lines){0};
}
