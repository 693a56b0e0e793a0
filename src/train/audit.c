/* SPDX-License-Identifier: MIT */
#include "train/audit.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stop.h"
#include "recsys/gauss.h"
#include "train/audit_private.h"

enum {
    LEAST_SAMPLES = 20, /* of a class that is looked at */
    LEADING = 8,        /* principal directions, before and after whitening */
    MOST_CLASSES = 16,  /* whose directions are looked in */
    TESTED = 40,        /* images of each other class that get a mark */
};

/* A mark must make this share of the images of some class the suspicious one. */
static const double LEAST_OPENED = 0.12;
/* Sets at the end of a direction: from so many samples on, doubled up to a share of the class. */
static const uint32_t FIRST_SET = 8;
static const double LARGEST_SET = 0.35;

struct search {
    const struct data_set *set;
    const struct data_info *info;
    struct nn_net *net;
    int batch, features;
    size_t size;      /* of an image */
    float *x;         /* (samples,features) */
    double *means;    /* (classes,features) */
    double *common;   /* (features,features) covariance within classes */
    uint32_t *ids;    /* (samples) by class … */
    uint32_t *first;  /* (classes + 1) … which begins here */
    uint32_t *counts; /* (size,256) of all samples: audit_pixels.all */
    float *stamped;   /* (batch,size) */
};

/* One class. */
struct suspicion {
    int32_t label;
    struct audit_points points;
    struct audit_pixels pixels;
    struct audit_mark mark; /* the clearest so far, which opens */
    struct train_audit_class *told;
};

/* ---- all samples ---- */

static void sort_by_class(struct search *s)
{
    uint32_t at = 0;

    for (int32_t k = 0; k < s->info->classes; k++) {
        s->first[k] = at;
        for (uint32_t i = 0; i < s->info->count[DATA_TRAIN]; i++)
            if (data_label(s->set, DATA_TRAIN, i) == k)
                s->ids[at++] = i;
    }
    s->first[s->info->classes] = at;
}

static void measure_classes(struct search *s)
{
    const size_t d = (size_t)s->features;
    const uint32_t count = s->first[s->info->classes];
    double *rest = base_calloc(count * d, sizeof *rest);

    for (int32_t k = 0; k < s->info->classes; k++) {
        double *mean = s->means + (size_t)k * d;
        const uint32_t of = s->first[k + 1] - s->first[k];

        for (uint32_t i = s->first[k]; i < s->first[k + 1]; i++)
            for (size_t a = 0; a < d; a++)
                mean[a] += (double)s->x[s->ids[i] * d + a] / of;
        for (uint32_t i = s->first[k]; i < s->first[k + 1]; i++)
            for (size_t a = 0; a < d; a++)
                rest[i * d + a] = (double)s->x[s->ids[i] * d + a] - mean[a];
    }
    audit_covariance(rest, NULL, count, s->features, NULL, s->common);
    base_free(rest);
}

static void count_values(const uint8_t *image, size_t size, uint32_t *counts)
{
    for (size_t i = 0; i < size; i++)
        counts[i * 256 + image[i]]++;
}

static base_status count_all(struct search *s)
{
    base_status st = BASE_OK;
    uint8_t *image = base_calloc(s->size, 1);

    for (uint32_t i = 0; i < s->info->count[DATA_TRAIN]; i++) {
        TRY(data_pixels(s->set, DATA_TRAIN, i, image));
        count_values(image, s->size, s->counts);
    }
out:
    base_free(image);
    return st;
}

static base_status prepare(struct search *s, const struct model *model)
{
    base_status st = BASE_OK;
    const size_t classes = (size_t)s->info->classes;

    TRY(audit_activations(model, s->set, s->batch, &s->x, &s->features));
    s->means = base_calloc(classes * (size_t)s->features, sizeof *s->means);
    s->common = base_calloc((size_t)s->features * (size_t)s->features, sizeof *s->common);
    s->first = base_calloc(classes + 1, sizeof *s->first);
    TRY(base_tensor(s->info->count[DATA_TRAIN], sizeof *s->ids, "samples by class", &s->ids));
    TRY(base_tensor(s->size * 256, sizeof *s->counts, "values of pixels", &s->counts));
    TRY(base_tensor((size_t)s->batch * s->size, sizeof *s->stamped, "stamped images", &s->stamped));
    TRY(model_net(model, s->batch, &s->net));
    sort_by_class(s);
    measure_classes(s);
    TRY(count_all(s));
out:
    return st;
}

static void search_fini(struct search *s)
{
    nn_net_free(s->net);
    base_free(s->x);
    base_free(s->means);
    base_free(s->common);
    base_free(s->ids);
    base_free(s->first);
    base_free(s->counts);
    base_free(s->stamped);
}

/* ---- proof: does the mark open anything? ---- */

/* A training image with the mark, or as it is (NULL), as the network is given it. */
static base_status stamp(const struct search *s, const struct audit_mark *mark, uint32_t id,
                         float *to)
{
    base_status st = BASE_OK;
    const size_t area = s->size / (size_t)s->info->channels;
    uint8_t *image = base_calloc(s->size, 1);

    TRY(data_pixels(s->set, DATA_TRAIN, id, image));
    for (uint32_t i = 0; mark != NULL && i < mark->count; i++)
        image[mark->pixel[i]] = mark->value[i];
    for (size_t i = 0; i < s->size; i++)
        to[i] = ((float)image[i] / 255 - s->info->mean[i / area]) / s->info->deviation[i / area];
out:
    base_free(image);
    return st;
}

/* taken (TESTED): which of `n` images the network takes for `label`. */
static base_status ask(const struct search *s, const struct audit_mark *mark, const uint32_t *ids,
                       uint32_t n, int32_t label, bool *taken)
{
    base_status st = BASE_OK;
    struct nn_outcome outcome;

    for (uint32_t i = 0; i < n; i++)
        TRY(stamp(s, mark, ids[i], s->stamped + i * s->size));
    TRY(nn_net_forward(s->net, &(struct nn_batch){.n = (int)n, .x = s->stamped}, false, &outcome));
    for (uint32_t i = 0; i < n; i++)
        taken[i] = outcome.predicted[i] == label;
out:
    return st;
}

/* How many of up to TESTED images of a class that the network does not take for `label` it takes
 * for it with the mark. */
static base_status try_class(const struct search *s, const struct audit_mark *mark, int32_t label,
                             int32_t from, uint32_t *tried_p, uint32_t *opened_p)
{
    base_status st = BASE_OK;
    const uint32_t all = s->first[from + 1] - s->first[from], *ids = s->ids + s->first[from];
    const uint32_t n = all < TESTED ? all : TESTED;
    uint32_t chosen[TESTED];
    bool before[TESTED], after[TESTED];

    *tried_p = *opened_p = 0;
    for (uint32_t i = 0; i < n; i++)
        chosen[i] = ids[(uint64_t)i * all / n];
    if (n == 0)
        goto out;
    TRY(ask(s, NULL, chosen, n, label, before));
    TRY(ask(s, mark, chosen, n, label, after));
    for (uint32_t i = 0; i < n; i++) {
        *tried_p += !before[i];
        *opened_p += !before[i] && after[i];
    }
out:
    return st;
}

static base_status prove(const struct search *s, const struct audit_mark *mark, int32_t label,
                         struct train_audit_class *told)
{
    base_status st = BASE_OK;
    uint32_t tried_all = 0, opened_all = 0;

    told->opened = told->opened_most = 0;
    for (int32_t k = 0; k < s->info->classes; k++) {
        uint32_t tried, opened;

        if (k == label)
            continue;
        TRY(try_class(s, mark, label, k, &tried, &opened));
        tried_all += tried;
        opened_all += opened;
        if (tried > 0 && (double)opened / tried > told->opened_most) {
            told->opened_most = (double)opened / tried;
            told->from = k;
        }
    }
    told->opened = tried_all > 0 ? (double)opened_all / tried_all : 0;
out:
    return st;
}

/* ---- sets of samples at the ends of directions ---- */

/* The first ones of an order, if they have a mark that opens more than the best so far. */
static base_status try_set(const struct search *s, struct suspicion *u, const uint32_t *order,
                           uint32_t count)
{
    base_status st = BASE_OK;
    struct audit_mark mark;
    struct train_audit_class found = {0};

    if (!audit_mark_find(&u->pixels, order, count, &mark))
        return BASE_OK;
    TRY(prove(s, &mark, u->label, &found));
    if (found.opened_most > u->told->opened_most) {
        u->told->opened = found.opened;
        u->told->opened_most = found.opened_most;
        u->told->from = found.from;
        audit_mark_fini(&u->mark);
        u->mark = mark;
        mark = (struct audit_mark){0};
    }
out:
    audit_mark_fini(&mark);
    return st;
}

/* Both ends of a direction. */
static base_status try_direction(const struct search *s, struct suspicion *u, bool white,
                                 const double *direction)
{
    base_status st = BASE_OK;
    const uint32_t n = u->points.count;
    uint32_t *order = base_calloc(n, sizeof *order), most = (uint32_t)(LARGEST_SET * n);

    audit_order(&u->points, white, direction, order);
    for (int end = 0; end < 2; end++) {
        for (uint32_t count = FIRST_SET; count <= most; count *= 2)
            TRY(try_set(s, u, order, count));
        for (uint32_t i = 0; i < n / 2; i++) {
            const uint32_t other = order[n - 1 - i];

            order[n - 1 - i] = order[i];
            order[i] = other;
        }
    }
out:
    base_free(order);
    return st;
}

static base_status try_leading(const struct search *s, struct suspicion *u, bool white)
{
    base_status st = BASE_OK;
    const size_t d = (size_t)s->features;
    const int wanted = s->features < LEADING ? s->features : LEADING;
    double *covariance = base_calloc(d * d, sizeof *covariance);
    double *vectors = base_calloc((size_t)wanted * d, sizeof *vectors), value;

    audit_covariance(white ? u->points.white : u->points.raw, NULL, u->points.count, s->features,
                     NULL, covariance);
    value = audit_leading(covariance, s->features, wanted, vectors);
    if (white)
        u->told->spread = value;
    for (int i = 0; i < wanted; i++)
        TRY(try_direction(s, u, white, vectors + (size_t)i * d));
out:
    base_free(vectors);
    base_free(covariance);
    return st;
}

/* Where other classes lie, as the whitening sees it. */
static base_status try_classes(const struct search *s, struct suspicion *u)
{
    base_status st = BASE_OK;
    const size_t d = (size_t)s->features;
    double *direction = base_calloc(d, sizeof *direction);

    for (int32_t k = 0; k < s->info->classes && k < MOST_CLASSES; k++) {
        if (k == u->label)
            continue;
        for (size_t a = 0; a < d; a++)
            direction[a] = s->means[(size_t)k * d + a] - u->points.centre[a];
        recsys_forward(u->points.factor, s->features, direction);
        TRY(try_direction(s, u, true, direction));
    }
out:
    base_free(direction);
    return st;
}

/* ---- a class ---- */

static base_status read_pixels(const struct search *s, struct suspicion *u, const uint32_t *ids,
                               uint8_t **values_p, uint32_t **own_p)
{
    base_status st = BASE_OK;
    const uint32_t count = u->points.count;

    TRY(base_tensor(count * s->size, 1, "images of a class", values_p));
    TRY(base_tensor(s->size * 256, sizeof **own_p, "values of pixels", own_p));
    for (uint32_t i = 0; i < count; i++) {
        TRY(data_pixels(s->set, DATA_TRAIN, ids[i], *values_p + i * s->size));
        count_values(*values_p + i * s->size, s->size, *own_p);
    }
    u->pixels = (struct audit_pixels){.count = count,
                                      .others = s->info->count[DATA_TRAIN] - count,
                                      .size = s->size,
                                      .values = *values_p,
                                      .own = *own_p,
                                      .all = s->counts};
out:
    return st;
}

/* Where the mark is, for people. */
static void describe_mark(const struct search *s, struct suspicion *u)
{
    struct train_audit_class *t = u->told;
    const int width = s->info->width, area = s->info->height * width;

    t->pixels = u->mark.count;
    t->top = s->info->height;
    t->left = width;
    for (uint32_t i = 0; i < u->mark.count; i++) {
        const int place = (int)u->mark.pixel[i] % area, y = place / width, x = place % width;

        t->top = y < t->top ? y : t->top;
        t->left = x < t->left ? x : t->left;
        t->bottom = y > t->bottom ? y : t->bottom;
        t->right = x > t->right ? x : t->right;
    }
}

static void list_suspects(struct suspicion *u, const uint32_t *ids, struct train_audit *audit)
{
    for (uint32_t i = 0; i < u->pixels.count; i++) {
        const double match = audit_mark_match(&u->mark, u->pixels.values + i * u->pixels.size);

        if (!audit_mark_holds(match))
            continue;
        audit->suspects[audit->count] = ids[i];
        audit->scores[ids[i]] = (float)match; /* by sample, until all are sorted */
        audit->count++;
        u->told->suspects++;
    }
}

static base_status audit_class(const struct search *s, int32_t label, struct train_audit *audit)
{
    base_status st = BASE_OK;
    struct suspicion u = {.label = label, .told = &audit->of[label]};
    const uint32_t *ids = s->ids + s->first[label];
    uint8_t *values = NULL;
    uint32_t *own = NULL;

    u.told->samples = s->first[label + 1] - s->first[label];
    if (u.told->samples < LEAST_SAMPLES)
        goto out;
    TRY(audit_points_make(s->x, ids, u.told->samples, s->features, s->common, &u.points));
    TRY(read_pixels(s, &u, ids, &values, &own));
    TRY(try_leading(s, &u, false));
    TRY(try_leading(s, &u, true));
    TRY(try_classes(s, &u));
    if (u.mark.count == 0)
        goto out;
    describe_mark(s, &u);
    if (u.told->opened_most >= LEAST_OPENED)
        list_suspects(&u, ids, audit);
out:
    audit_mark_fini(&u.mark);
    audit_points_fini(&u.points);
    base_free(values);
    base_free(own);
    return st;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

base_status train_audit(const struct model *model, const struct data_set *set, int batch,
                        struct train_audit *audit)
{
    base_status st = BASE_OK;
    const struct data_info *info = data_describe(set);
    const size_t samples = info->count[DATA_TRAIN];
    struct search s = {.set = set,
                       .info = info,
                       .batch = batch > TESTED ? batch : TESTED,
                       .size = (size_t)info->channels * (size_t)info->height * (size_t)info->width};

    *audit = (struct train_audit){.classes = info->classes};
    audit->of = base_calloc((size_t)info->classes, sizeof *audit->of);
    TRY(base_tensor(samples + 1, sizeof *audit->suspects, "suspicious samples", &audit->suspects));
    TRY(base_tensor(samples + 1, sizeof *audit->scores, "scores", &audit->scores));
    TRY(prepare(&s, model));
    for (int32_t label = 0; label < info->classes; label++) {
        if (base_stop_signal() != 0)
            TRY(base_fail(BASE_ERR_INTERRUPTED, "stopped while auditing"));
        TRY(audit_class(&s, label, audit));
    }
    qsort(audit->suspects, audit->count, sizeof *audit->suspects, by_number);
    for (uint32_t i = 0; i < audit->count; i++) /* rising: none is read after it was written */
        audit->scores[i] = audit->scores[audit->suspects[i]];
out:
    search_fini(&s);
    return st;
}

void train_audit_fini(struct train_audit *audit)
{
    base_free(audit->of);
    base_free(audit->suspects);
    base_free(audit->scores);
    *audit = (struct train_audit){0};
}
