/* SPDX-License-Identifier: MIT */
#include "train/record.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"

enum { BINS = 20 };

struct train_record {
    struct base_events *const *events;
    struct train_tensorboard *const *board;
    bool armed;
    int64_t step;
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

static void hook(void *context, const struct nn_node *node, int n, const float *values)
{
    struct train_record *r = context;
    struct walk w = {.low = INFINITY, .high = -INFINITY};
    struct base_str bins = {0};
    double mean, variance;
    char tag[128];

    if (!r->armed || *r->events == NULL)
        return;
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

        TRY(base_prefix(nn_graph_find(graph, layers->at[i], &index), "--record"));
        nn_net_hook(net, index, hook, r);
    }
    *record_p = r;
    r = NULL;
out:
    train_record_free(r);
    return st;
}

void train_record_free(struct train_record *record)
{
    base_free(record);
}

void train_record_arm(struct train_record *record, bool armed, int64_t step)
{
    if (record == NULL)
        return;
    record->armed = armed;
    record->step = step;
}
