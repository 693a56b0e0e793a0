/* SPDX-License-Identifier: MIT */
#include "train/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/npy.h"
#include "base/str.h"

enum { BINS = 20 };

static const char WHOLE[] = ":npy";

struct layer {
    struct train_record *record;
    const struct nn_node *node;
    int index;
    bool measured, whole; /* without, with ":npy" */
    struct base_npy file; /* of whole activations, between begin and end */
    float *values;        /* (C,H,W) of one sample */
};

struct train_record {
    struct base_events *const *events;
    struct train_tensorboard *const *board;
    bool armed;
    int64_t step;
    bool whole;          /* between begin and end … */
    base_status failure; /* … the first */
    int count;
    struct layer layers[BASE_MAX_TEXTS];
};

/* Goes over the true values of a batch, never over the padding of channels. */
struct walk {
    double sum, squares, low, high;
    uint64_t count, zeros, bins[BINS];
};

static void measure(struct walk *w, struct nn_shape s, int n, const float *values, bool fill)
{
    size_t stride = nn_shape_floats(s);

    for (int i = 0; i < n; i++)
        for (int c = 0; c < s.c; c++)
            for (int y = 0; y < s.h; y++)
                for (int x = 0; x < s.w; x++) {
                    double v = values[(size_t)i * stride + nn_shape_at(s, c, y, x)];

                    if (fill) {
                        int bin = (int)((v - w->low) / (w->high - w->low) * BINS);

                        w->bins[bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin]++;
                        continue;
                    }
                    w->sum += v;
                    w->squares += v * v;
                    w->zeros += v == 0;
                    w->low = fmin(w->low, v);
                    w->high = fmax(w->high, v);
                    w->count++;
                }
}

static void tell(struct train_record *r, const struct nn_node *node, int n, const float *values)
{
    struct walk w = {.low = INFINITY, .high = -INFINITY};
    struct base_str bins = {0};
    double mean, variance;
    char tag[128];

    measure(&w, node->out, n, values, false);
    if (w.count == 0)
        return; /* an empty share */
    if (!isfinite(w.sum) || !isfinite(w.squares))
        return; /* the loss will say so */
    if (w.high > w.low)
        measure(&w, node->out, n, values, true);
    else
        w.bins[0] = w.count;
    mean = w.sum / (double)w.count;
    variance = fmax(0, w.squares / (double)w.count - mean * mean);
    for (int i = 0; i < BINS; i++)
        base_str_add(&bins, "%s%llu", i ? "," : "", (unsigned long long)w.bins[i]);
    base_event(*r->events,
               "{\"event\":\"activations\",\"step\":%lld,\"layer\":\"%s\",\"mean\":%.9g,"
               "\"deviation\":%.9g,\"zeros\":%.9g,\"low\":%.9g,\"high\":%.9g,\"histogram\":[%s]}",
               (long long)r->step, node->name, mean, sqrt(variance),
               (double)w.zeros / (double)w.count, w.low, w.high, bins.text);
    base_str_fini(&bins);
    snprintf(tag, sizeof tag, "activations/%s", node->name);
    train_tensorboard_histogram(*r->board, r->step, tag,
                                &(struct train_histogram){.low = w.low,
                                                          .high = w.high,
                                                          .sum = w.sum,
                                                          .squares = w.squares,
                                                          .count = w.count,
                                                          .bins = w.bins,
                                                          .bin_count = BINS});
}

/* From memory layout to (C,H,W). */
static base_status keep_values(struct layer *l, int n, const float *values)
{
    base_status st = BASE_OK;
    const struct nn_shape s = l->node->out;
    const size_t stride = nn_shape_floats(s), bytes = nn_shape_values(s) * sizeof *l->values;

    for (int i = 0; i < n; i++) {
        float *to = l->values;

        for (int c = 0; c < s.c; c++)
            for (int y = 0; y < s.h; y++)
                for (int x = 0; x < s.w; x++)
                    *to++ = values[(size_t)i * stride + nn_shape_at(s, c, y, x)];
        TRY(base_npy_write(&l->file, l->values, bytes));
    }
out:
    return st;
}

static void hook(void *context, const struct nn_node *node, int n, const float *values)
{
    struct layer *l = context;
    struct train_record *r = l->record;

    if (r->whole && l->whole && r->failure == BASE_OK)
        r->failure = keep_values(l, n, values);
    if (r->armed && l->measured && *r->events != NULL)
        tell(r, node, n, values);
}

/* ---- layers ---- */

/* "conv1" or "conv1:npy" */
static base_status find_layer(const struct nn_graph *graph, const char *text, int *index_p,
                              bool *whole_p)
{
    base_status st = BASE_OK;
    const char *colon = strchr(text, ':');
    char *name = base_strndup(text, strcspn(text, ":"));

    *whole_p = colon != NULL;
    if (colon != NULL && strcmp(colon, WHOLE) != 0)
        TRY(base_fail(BASE_ERR_USAGE, "'%s' after the layer's name is not %s", colon, WHOLE));
    TRY(nn_graph_find(graph, name, index_p));
out:
    base_free(name);
    return base_prefix(st, "--record");
}

base_status train_record_check(const struct base_texts *layers, const struct nn_graph *graph)
{
    base_status st = BASE_OK;
    int index;
    bool whole;

    for (int i = 0; i < layers->count; i++)
        TRY(find_layer(graph, layers->at[i], &index, &whole));
out:
    return st;
}

bool train_record_wants_whole(const struct base_texts *layers)
{
    for (int i = 0; i < layers->count; i++)
        if (strchr(layers->at[i], ':') != NULL)
            return true;
    return false;
}

/* The entry of a layer, which may be named with and without ":npy". */
static struct layer *entry_of(struct train_record *r, int index)
{
    int i = 0;

    while (i < r->count && r->layers[i].index != index)
        i++;
    if (i == r->count)
        r->count++;
    r->layers[i].record = r;
    r->layers[i].index = index;
    return &r->layers[i];
}

base_status train_record_new(struct nn_net *net, const struct nn_graph *graph,
                             const struct base_texts *layers, struct base_events *const *events,
                             struct train_tensorboard *const *board, struct train_record **record_p)
{
    base_status st = BASE_OK;
    struct train_record *r = base_calloc(1, sizeof *r);

    *record_p = NULL;
    r->events = events;
    r->board = board;
    for (int i = 0; i < layers->count; i++) {
        int index = -1;
        bool whole;
        struct layer *l;

        TRY(find_layer(graph, layers->at[i], &index, &whole));
        l = entry_of(r, index);
        l->node = nn_graph_node(graph, index);
        l->whole |= whole;
        l->measured |= !whole;
        if (l->whole && l->values == NULL)
            TRY(base_tensor(nn_shape_values(l->node->out), sizeof *l->values, "activations",
                            &l->values));
        nn_net_hook(net, index, hook, l);
    }
    *record_p = r;
    r = NULL;
out:
    train_record_free(r);
    return st;
}

void train_record_free(struct train_record *record)
{
    for (int i = 0; record != NULL && i < record->count; i++)
        base_free(record->layers[i].values);
    base_free(record);
}

void train_record_arm(struct train_record *record, bool armed, int64_t step)
{
    if (record == NULL)
        return;
    record->armed = armed;
    record->step = step;
}

/* ---- whole activations ---- */

static base_status open_file(struct layer *l, const char *folder, int64_t epoch, size_t samples)
{
    base_status st = BASE_OK;
    const struct nn_shape s = l->node->out;
    const size_t shape[] = {samples, (size_t)s.c, (size_t)s.h, (size_t)s.w};
    char *dir = base_format("%s/%s", folder, l->node->name);
    char *path = base_format("%s/epoch-%04" PRId64 ".npy", dir, epoch);

    TRY(base_make_dirs(dir));
    TRY(base_npy_begin(path, "<f4", shape, s.h * s.w == 1 ? 2 : 4, &l->file));
out:
    base_free(path);
    base_free(dir);
    return st;
}

base_status train_record_begin(struct train_record *r, const char *folder, int64_t epoch,
                               size_t samples)
{
    base_status st = BASE_OK;

    r->whole = true;
    r->failure = BASE_OK;
    for (int i = 0; i < r->count; i++)
        if (r->layers[i].whole)
            TRY(open_file(&r->layers[i], folder, epoch, samples));
out:
    return st;
}

base_status train_record_end(struct train_record *r, bool keep)
{
    base_status st = r->failure;

    for (int i = 0; i < r->count; i++) {
        struct layer *l = &r->layers[i];

        if (st == BASE_OK && keep && l->whole)
            st = base_npy_commit(&l->file);
        base_npy_end(&l->file);
    }
    r->whole = false;
    r->failure = BASE_OK;
    return st;
}
