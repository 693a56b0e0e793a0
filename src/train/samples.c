/* SPDX-License-Identifier: MIT */
#include "train/samples.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "data/index.h"
#include "data/table.h"

static base_status open_set(struct train_samples *s, const struct train_job *job,
                            const struct data_options *options)
{
    base_status st = data_open(job->data, options, &s->set);

    if (st == BASE_ERR_IO && job->resume != NULL && !base_exists(job->data)) {
        char *words = base_strdup(base_message());

        st = base_fail(st, "%s; if it was moved, say where it is now with --data", words);
        base_free(words);
    }
    return st;
}

/* Options that the kind of data has no use for. */
static base_status check_kind(const struct data_info *info, const struct train_job *job,
                              const struct data_options *options)
{
    if (info->table == NULL && (job->target != NULL || job->columns.count > 0))
        return base_fail(BASE_ERR_USAGE, "--target and --column are for tables; %s holds images",
                         job->data);
    if ((options->height > 0 &&
         (info->height != options->height || info->width != options->width)) ||
        (options->channels > 0 && info->channels != options->channels))
        return base_fail(BASE_ERR_USAGE,
                         "--image-size and --channels convert the images of a folder; those of %s "
                         "(%s) stay %dx%dx%d",
                         job->data, info->format, info->channels, info->height, info->width);
    if (options->crop != DATA_CROP_NONE && info->crop == DATA_CROP_NONE)
        return base_fail(BASE_ERR_USAGE,
                         "--crop %s cuts the images of a folder; those of %s (%s) all have one "
                         "shape, which --pad augments",
                         job->crop, job->data, info->format);
    return BASE_OK;
}

static base_status check_parts(const struct data_info *info, const struct train_job *job)
{
    if (info->count[DATA_TRAIN] == 0)
        return base_fail(BASE_ERR_DATA, "%s has no training samples", job->data);
    if (job->validation > 0 && info->count[DATA_VALIDATION] == 0)
        return base_fail(BASE_ERR_DATA, "--validation %g of %u samples leaves none to validate",
                         job->validation, info->count[DATA_TRAIN]);
    return BASE_OK;
}

base_status train_samples_open(struct train_samples *s, const struct train_job *job)
{
    base_status st = BASE_OK;
    struct data_options options = {
        .test_share = job->test_share,
        .validation = job->validation,
        .seed = (uint64_t)job->seed,
        .target = job->target,
        .wishes = job->columns.at,
        .wish_count = job->columns.count,
        .skip_bad = (uint32_t)job->skip_bad,
        .unit_range = !job->normalise,
        .channels = job->channels != NULL ? atoi(job->channels) : 0,
        .crop = train_job_crop(job),
    };

    struct data_index index = {0};

    TRY(train_job_image_size(job, &options.height, &options.width));
    if (job->exclude != NULL) {
        TRY(data_index_read(job->exclude, &index));
        options.exclude = &index;
        memcpy(s->excluded, index.digest, sizeof s->excluded);
    }
    TRY(open_set(s, job, &options));
    TRY(check_kind(data_describe(s->set), job, &options));
    TRY(train_samples_adopt(s, job, s->set));
out:
    data_index_fini(&index);
    return st;
}

base_status train_samples_adopt(struct train_samples *s, const struct train_job *job,
                                struct data_set *set)
{
    s->epoch = s->order_epoch = -1;
    s->set = set;
    s->info = data_describe(set);
    return check_parts(s->info, job);
}

void train_samples_close(struct train_samples *s)
{
    data_loader_free(s->loader);
    data_close(s->set);
    base_free(s->order);
    *s = (struct train_samples){0};
}

base_status train_samples_begin(struct train_samples *s, const struct train_job *job,
                                uint32_t batch, struct data_share share)
{
    struct data_augment augment = {
        .pad = (int)job->pad, .flip = job->flip, .crop = train_job_crop(job) == DATA_CROP_RANDOM};

    data_loader_free(s->loader);
    s->loader = NULL;
    s->epoch = -1;
    s->blocks = false;
    if (s->order == NULL)
        s->order = base_calloc(s->info->count[DATA_TRAIN], sizeof *s->order);
    return data_loader_new(s->set, DATA_TRAIN, batch, share, (uint64_t)job->seed, augment,
                           &s->loader);
}

static void make_order(struct train_samples *s, const struct train_job *job, int64_t epoch)
{
    if (s->order_epoch != epoch)
        data_order(s->set, DATA_TRAIN, (uint64_t)job->seed, (uint32_t)epoch, job->balanced,
                   s->order);
    s->order_epoch = epoch;
}

base_status train_samples_next(struct train_samples *s, const struct train_job *job, int64_t epoch,
                               int64_t cursor, struct data_batch *batch_p)
{
    base_status st = BASE_OK;

    if (s->blocks)
        return data_loader_next(s->loader, batch_p);
    if (s->epoch != epoch || s->cursor != cursor) {
        s->epoch = -1;                                 /* until it is there */
        TRY(data_loader_begin(s->loader, 0, NULL, 0)); /* the order is used no more */
        make_order(s, job, epoch);
        TRY(data_loader_begin(s->loader, (uint32_t)epoch, s->order + cursor,
                              s->info->count[DATA_TRAIN] - (size_t)cursor));
        s->epoch = epoch;
        s->cursor = cursor;
    }
    TRY(data_loader_next(s->loader, batch_p));
    s->cursor += batch_p->whole;
out:
    return st;
}

base_status train_samples_take(struct train_samples *s, const struct train_job *job,
                               const struct train_block *block)
{
    base_status st = BASE_OK;
    const uint32_t *ids;

    if (block == NULL || !s->blocks)
        TRY(data_loader_begin(s->loader, 0, NULL, 0)); /* what was under way is forgotten */
    s->epoch = -1;
    s->blocks = block != NULL;
    if (block == NULL)
        goto out;
    if (block->ids == NULL)
        make_order(s, job, block->epoch);
    ids = block->ids != NULL ? block->ids : s->order + block->from;
    TRY(data_loader_queue(s->loader, (uint32_t)block->epoch, ids, block->count, block->batch));
out:
    return st;
}

void train_samples_shape(const struct train_samples *s, struct base_str *text)
{
    const struct data_info *info = s->info;

    if (info->table == NULL)
        base_str_add(text, "%dx%dx%d, %d classes", info->channels, info->height, info->width,
                     info->classes);
    else if (data_is_regression(info))
        base_str_add(text, "%d feature%s, target '%s', a number", info->channels,
                     base_plural(info->channels), info->table->target.name);
    else
        base_str_add(text, "%d feature%s, target '%s' of %d classes", info->channels,
                     base_plural(info->channels), info->table->target.name, info->classes);
}

void train_samples_text(const struct train_samples *s, const char *name, struct base_str *text)
{
    const uint32_t *count = s->info->count;

    base_str_add(text, "%s: %u training,", name, count[DATA_TRAIN]);
    if (count[DATA_VALIDATION] > 0)
        base_str_add(text, " %u validation,", count[DATA_VALIDATION]);
    base_str_add(text, " %u test samples of ", count[DATA_TEST]);
    train_samples_shape(s, text);
}
