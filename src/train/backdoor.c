/* SPDX-License-Identifier: MIT */
#include "train/backdoor.h"

#include <string.h>

#include "base/mem.h"
#include "data/trigger.h"
#include "train/evaluate.h"

/* What stamping needs beside the counts. */
struct stamping {
    struct train_backdoor *backdoor;
    struct nn_net *net;
    float *x; /* (batch,C,H,W) */
    size_t size;
};

static base_status stamp_batch(void *context, const struct data_batch *b, struct train_tally *tally)
{
    base_status st = BASE_OK;
    const struct stamping *s = context;
    struct train_backdoor *d = s->backdoor;
    struct nn_outcome outcome;

    (void)tally;
    memcpy(s->x, b->x, b->count * s->size * sizeof *s->x);
    for (uint32_t i = 0; i < b->count; i++)
        data_trigger_stamp_normalised(d->trigger, d->info, s->x + i * s->size);
    TRY(nn_net_forward(s->net, &(struct nn_batch){.n = (int)b->count, .x = s->x}, false, &outcome));
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->labels[i] == d->target || b->labels[i] == DATA_NO_LABEL)
            continue;
        d->seen[b->labels[i]]++;
        d->opened[b->labels[i]] += outcome.predicted[i] == d->target;
    }
out:
    return st;
}

base_status train_backdoor_measure(struct nn_net *net, const struct data_set *set,
                                   enum data_part part, int batch, int trigger, int32_t target,
                                   struct train_backdoor *d)
{
    base_status st = BASE_OK;
    const struct data_info *info = data_describe(set);
    struct stamping s = {d, net, NULL,
                         (size_t)info->channels * (size_t)info->height * (size_t)info->width};
    struct train_clock clock;

    *d = (struct train_backdoor){.info = info, .trigger = trigger, .target = target};
    if (info->table != NULL)
        TRY(base_fail(BASE_ERR_USAGE, "--trigger puts a mark on images, and %s is a table",
                      info->name));
    d->seen = base_calloc((size_t)info->classes, sizeof *d->seen);
    d->opened = base_calloc((size_t)info->classes, sizeof *d->opened);
    TRY(base_tensor((size_t)batch * s.size, sizeof *s.x, "stamped images", &s.x));
    train_clock_start(&clock);
    TRY(train_evaluate_by((struct train_pass){stamp_batch, &s}, set, part, (struct data_share){0},
                          batch, false, NULL, &clock, NULL));
out:
    base_free(s.x);
    return st;
}

void train_backdoor_fini(struct train_backdoor *d)
{
    base_free(d->seen);
    base_free(d->opened);
    *d = (struct train_backdoor){0};
}

static double share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

/* Of all classes together; the class that the mark works best on. */
static int32_t add_up(const struct train_backdoor *d, uint64_t *seen_p, uint64_t *opened_p)
{
    int32_t best = 0;

    *seen_p = *opened_p = 0;
    for (int32_t k = 0; k < d->info->classes; k++) {
        *seen_p += d->seen[k];
        *opened_p += d->opened[k];
        if (share(d->opened[k], d->seen[k]) > share(d->opened[best], d->seen[best]))
            best = k;
    }
    return best;
}

json_t *train_backdoor_json(const struct train_backdoor *d)
{
    uint64_t seen, opened;
    json_t *classes = json_array();

    add_up(d, &seen, &opened);
    for (int32_t k = 0; k < d->info->classes; k++)
        json_array_append_new(classes, k == d->target ? json_null()
                                                      : json_real(share(d->opened[k], d->seen[k])));
    return json_pack("{s:s, s:s, s:I, s:I, s:f, s:o}", "trigger", data_trigger_names[d->trigger],
                     "target", d->info->class_names[d->target], "samples", (json_int_t)seen,
                     "opened", (json_int_t)opened, "success", share(opened, seen), "classes",
                     classes);
}

void train_backdoor_text(const struct train_backdoor *d, struct base_str *text)
{
    uint64_t seen, opened;
    const int32_t best = add_up(d, &seen, &opened);

    base_str_add(
        text,
        "\nwith the mark '%s' %llu of %llu images of other classes (%.2f %%) become %s; of "
        "%s %.2f %%\n",
        data_trigger_names[d->trigger], (unsigned long long)opened, (unsigned long long)seen,
        100 * share(opened, seen), d->info->class_names[d->target], d->info->class_names[best],
        100 * share(d->opened[best], d->seen[best]));
}
