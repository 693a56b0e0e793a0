/* SPDX-License-Identifier: MIT
 *
 * Batches made ready in the background. Threads take the numbers of the next batches one after the
 * other and fill the slots of a ring; the caller takes them in order. One thread is enough for what
 * lies in memory; sets that decode or compute their pixels get a few. The slot the caller
 * holds is filled again only once it asks for the next. All state below `lock` is guarded by it;
 * a slot belongs to the thread that fills it until it is ready.
 */
#include "data/loader.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/data_private.h"
#include "data/image.h"

enum { SLOTS = 4, MAX_THREADS = 3 };

struct slot {
    float *x;
    int32_t *labels;
    uint32_t *ids;   /* a copy: a queued run may be gone before the batch is used */
    char **bad;      /* as in data_batch; owned */
    float *numbers;  /* NULL: labels are to be predicted */
    uint8_t *pixels; /* one image, scratch of the thread that fills the slot */
    uint32_t count, whole, epoch;
    bool ready;
    base_status st;
    char message[1024];
};

/* Samples to load, in batches that do not reach into the next run. */
struct run {
    struct run *next;
    uint32_t *owned;     /* NULL: the caller's */
    const uint32_t *ids; /* those that no thread has taken yet … */
    size_t count;        /* … and their number */
    uint32_t epoch, batch;
    struct data_share share; /* of each batch */
};

struct data_loader {
    const struct data_set *set;
    enum data_part part;
    uint32_t batch; /* of all shares */
    struct data_share share;
    uint64_t seed;
    struct data_augment augment;
    bool tolerant;
    float table[DATA_MAX_CHANNELS][256]; /* level → normalised */
    pthread_t threads[MAX_THREADS];
    int thread_count;

    pthread_mutex_t lock;
    pthread_cond_t work, done; /* for the threads; for the caller */
    struct slot slots[SLOTS];
    struct run *first, *last; /* what is left to load, in order; NULL: nothing */
    size_t claimed;           /* taken by threads */
    size_t returned;          /* given to the caller … */
    size_t freed;             /* … and given back, so that their slots are free */
    int busy;                 /* threads that fill a slot now */
    bool cancel, stop;
};

/* Blocks of a sample's random words. */
enum { VIEW_WORDS, CROP_WORDS };

static struct base_rng rng_of(const struct data_loader *l, uint32_t epoch, uint32_t id)
{
    return base_rng_of(l->seed, BASE_STREAM_AUGMENT, 0, epoch, id);
}

/* Where a sample is cropped and whether it is mirrored. */
struct view {
    int dy, dx;
    bool mirror;
};

static struct view view_of(const struct data_loader *l, uint32_t epoch, uint32_t id)
{
    struct base_rng rng = rng_of(l, epoch, id);
    uint64_t places = 2 * (uint64_t)l->augment.pad + 1;
    uint32_t words[4];

    base_rng_block(&rng, VIEW_WORDS, words);
    return (struct view){(int)((words[0] * places) >> 32) - l->augment.pad,
                         (int)((words[1] * places) >> 32) - l->augment.pad,
                         l->augment.flip && (words[2] >> 31) != 0};
}

static int clamp(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

/* x (C,H,W) from pixels (C,H,W): cropped out of the black-padded image, mirrored, normalised. */
static void convert(const struct data_loader *l, struct view view, const uint8_t *pixels, float *x)
{
    const struct data_info *info = data_describe(l->set);
    int h = info->height, w = info->width, step = view.mirror ? -1 : 1;
    /* columns [low,high) of x show pixels, the others padding */
    int low = clamp(-step * view.dx, 0, w), high = clamp(w - step * view.dx, low, w);
    int from = view.mirror ? w - 1 - low + view.dx : low + view.dx;

    for (int c = 0; c < info->channels; c++) {
        const float *table = l->table[c];

        for (int y = view.dy; y < h + view.dy; y++, x += w) {
            bool inside = y >= 0 && y < h;
            const uint8_t *pixel =
                pixels + ((size_t)c * (size_t)h + (size_t)(inside ? y : 0)) * (size_t)w + from;

            for (int i = 0; i < (inside ? low : w); i++)
                x[i] = table[0];
            if (!inside)
                continue;
            for (int i = low; i < high; i++, pixel += step)
                x[i] = table[*pixel];
            for (int i = high; i < w; i++)
                x[i] = table[0];
        }
    }
}

static base_status read_pixels(const struct data_loader *l, uint32_t epoch, uint32_t id,
                               uint8_t *pixels)
{
    struct base_rng rng = rng_of(l, epoch, id);
    uint32_t words[4];

    if (!l->augment.crop)
        return data_pixels(l->set, l->part, id, pixels);
    base_rng_block(&rng, CROP_WORDS, words);
    return data_random_pixels(l->set, l->part, id, words, pixels);
}

/* x of one sample: (C,H,W) of an image, the features of a row. */
static base_status fill_sample(const struct data_loader *l, uint32_t epoch, uint32_t id,
                               uint8_t *pixels, float *x)
{
    base_status st = BASE_OK;

    if (data_describe(l->set)->table != NULL) {
        data_features(l->set, l->part, id, x);
        goto out;
    }
    TRY(read_pixels(l, epoch, id, pixels));
    convert(l, view_of(l, epoch, id), pixels, x);
out:
    return st;
}

static base_status fill(struct data_loader *l, struct slot *slot)
{
    base_status st = BASE_OK;
    const struct data_info *info = data_describe(l->set);
    size_t size = (size_t)info->channels * (size_t)info->height * (size_t)info->width;

    for (uint32_t i = 0; i < slot->count; i++) {
        uint32_t id = slot->ids[i];

        if (id >= info->count[l->part])
            TRY(base_fail(BASE_ERR_INTERNAL, "sample %u asked for, but there are %u", id,
                          info->count[l->part]));
        if (__atomic_load_n(&l->cancel, __ATOMIC_RELAXED))
            break;
        base_free(slot->bad[i]);
        slot->bad[i] = NULL;
        slot->labels[i] = data_label(l->set, l->part, id);
        if (slot->numbers != NULL)
            slot->numbers[i] = data_number(l->set, l->part, id);
        st = fill_sample(l, slot->epoch, id, slot->pixels, slot->x + i * size);
        if (st == BASE_OK)
            continue;
        if (!l->tolerant)
            goto out;
        slot->bad[i] = base_strdup(base_message());
        memset(slot->x + i * size, 0, size * sizeof *slot->x);
        st = BASE_OK;
    }
out:
    return st;
}

/* Under the lock: is there a batch to fill and a free slot for it? */
static bool has_work(const struct data_loader *l)
{
    return !l->cancel && l->first != NULL && l->claimed < l->freed + SLOTS;
}

void data_share_of(struct data_share share, uint32_t whole, uint32_t *first_p, uint32_t *count_p)
{
    uint64_t n = whole, total = share.total;

    *first_p = total > 0 ? (uint32_t)(n * share.from / total) : 0;
    *count_p = (total > 0 ? (uint32_t)(n * share.to / total) : whole) - *first_p;
}

uint32_t data_share_most(struct data_share share, uint32_t whole)
{
    uint64_t n = whole, weight = share.to - share.from, total = share.total;

    return total > 0 ? (uint32_t)((n * weight + total - 1) / total) : whole;
}

/* Under the lock: all samples of the first run are taken. */
static void drop_run(struct data_loader *l)
{
    struct run *run = l->first;

    l->first = run->next;
    base_free(run->owned);
    base_free(run);
}

/* Under the lock: the next batch, described in a slot. */
static struct slot *claim(struct data_loader *l)
{
    struct run *run = l->first;
    struct slot *slot = &l->slots[l->claimed++ % SLOTS];
    uint32_t first;

    slot->whole = run->count < run->batch ? (uint32_t)run->count : run->batch;
    slot->epoch = run->epoch;
    data_share_of(run->share, slot->whole, &first, &slot->count);
    memcpy(slot->ids, run->ids + first, slot->count * sizeof *slot->ids);
    run->ids += slot->whole;
    run->count -= slot->whole;
    if (run->count == 0)
        drop_run(l);
    return slot;
}

/* Under the lock. */
static void append(struct data_loader *l, struct run run)
{
    struct run *added;

    if (run.count == 0) {
        base_free(run.owned);
        return;
    }
    added = base_calloc(1, sizeof *added);
    *added = run;
    if (l->first == NULL)
        l->first = added;
    else
        l->last->next = added;
    l->last = added;
    pthread_cond_broadcast(&l->work);
}

static void *work(void *argument)
{
    struct data_loader *l = argument;

    pthread_mutex_lock(&l->lock);
    for (;;) {
        struct slot *slot;
        base_status st;

        while (!l->stop && !has_work(l))
            pthread_cond_wait(&l->work, &l->lock);
        if (l->stop)
            break;
        slot = claim(l);
        l->busy++;
        pthread_mutex_unlock(&l->lock);
        st = fill(l, slot);
        pthread_mutex_lock(&l->lock);
        slot->st = st;
        if (st != BASE_OK)
            snprintf(slot->message, sizeof slot->message, "%s", base_message());
        slot->ready = true;
        l->busy--;
        pthread_cond_broadcast(&l->done);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static void make_tables(struct data_loader *l)
{
    const struct data_info *info = data_describe(l->set);

    for (int c = 0; info->table == NULL && c < info->channels; c++)
        data_level_table(info->mean[c], info->deviation[c], l->table[c]);
}

uint64_t data_loader_memory(const struct data_info *info, uint32_t most)
{
    uint64_t values = (uint64_t)info->channels * (uint64_t)info->height * (uint64_t)info->width;
    uint64_t sample = values * sizeof(float) + sizeof(int32_t) + sizeof(uint32_t) + sizeof(char *) +
                      (data_is_regression(info) ? sizeof(float) : 0);

    return SLOTS * (most * sample + (info->table == NULL ? values : 0));
}

static base_status make_slots(struct data_loader *l)
{
    base_status st = BASE_OK;
    const struct data_info *info = data_describe(l->set);
    size_t size = (size_t)info->channels * (size_t)info->height * (size_t)info->width;
    size_t largest = data_share_most(l->share, l->batch), total = 0;

    TRY(base_mul(size, largest, &total));
    for (int i = 0; i < SLOTS; i++) {
        TRY(base_tensor(total, sizeof(float), "batches of data", &l->slots[i].x));
        TRY(base_tensor(largest, sizeof(int32_t), "labels", &l->slots[i].labels));
        TRY(base_tensor(largest, sizeof(uint32_t), "samples' numbers", &l->slots[i].ids));
        l->slots[i].bad = base_calloc(largest, sizeof(char *));
        if (data_is_regression(info))
            TRY(base_tensor(largest, sizeof(float), "numbers", &l->slots[i].numbers));
        if (info->table == NULL)
            TRY(base_tensor(size, 1, "an image", &l->slots[i].pixels));
    }
out:
    return st;
}

static base_status start_threads(struct data_loader *l)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int wanted = !data_costly(l->set) || cores < 2 ? 1 : cores < MAX_THREADS ? 2 : MAX_THREADS;

    while (l->thread_count < wanted) {
        errno = pthread_create(&l->threads[l->thread_count], NULL, work, l);
        if (errno != 0)
            return base_fail(BASE_ERR_IO, "cannot start a thread that loads data: %m");
        l->thread_count++;
    }
    return BASE_OK;
}

base_status data_loader_new(const struct data_set *set, enum data_part part, uint32_t batch,
                            struct data_share share, uint64_t seed, struct data_augment augment,
                            struct data_loader **loader_p)
{
    base_status st = BASE_OK;
    struct data_loader *l = base_calloc(1, sizeof *l);

    *loader_p = NULL;
    *l = (struct data_loader){
        .set = set, .part = part, .batch = batch, .share = share, .seed = seed, .augment = augment};
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->done, NULL);
    if (batch == 0)
        TRY(base_fail(BASE_ERR_USAGE, "a batch of 0 samples; it takes at least 1"));
    if (data_describe(set)->table != NULL && (augment.pad != 0 || augment.flip))
        TRY(base_fail(BASE_ERR_USAGE, "--pad and --flip are for images; %s is a table",
                      data_describe(set)->name));
    if (augment.pad < 0 || augment.pad > DATA_MAX_SIDE)
        TRY(base_fail(BASE_ERR_USAGE, "padding of %d pixels is not from 0 to %d", augment.pad,
                      DATA_MAX_SIDE));
    if (augment.crop && !data_crops(set))
        TRY(base_fail(BASE_ERR_USAGE, "the images of %s all have one shape and are not cropped",
                      data_describe(set)->name));
    make_tables(l);
    TRY(make_slots(l));
    TRY(start_threads(l));
    *loader_p = l;
    l = NULL;
out:
    data_loader_free(l);
    return st;
}

void data_loader_free(struct data_loader *l)
{
    if (l == NULL)
        return;
    pthread_mutex_lock(&l->lock);
    __atomic_store_n(&l->cancel, true, __ATOMIC_RELAXED);
    l->stop = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->thread_count; i++)
        pthread_join(l->threads[i], NULL);
    for (int i = 0; i < SLOTS; i++) {
        base_free(l->slots[i].x);
        base_free(l->slots[i].labels);
        base_free(l->slots[i].ids);
        base_free(l->slots[i].numbers);
        base_free(l->slots[i].pixels);
        if (l->slots[i].bad != NULL)
            base_names_free(l->slots[i].bad, data_share_most(l->share, l->batch));
    }
    while (l->first != NULL)
        drop_run(l);
    pthread_cond_destroy(&l->done);
    pthread_cond_destroy(&l->work);
    pthread_mutex_destroy(&l->lock);
    base_free(l);
}

void data_loader_tolerate(struct data_loader *l)
{
    l->tolerant = true;
}

base_status data_loader_begin(struct data_loader *l, uint32_t epoch, const uint32_t *ids,
                              size_t count)
{
    pthread_mutex_lock(&l->lock);
    __atomic_store_n(&l->cancel, true, __ATOMIC_RELAXED);
    while (l->busy > 0)
        pthread_cond_wait(&l->done, &l->lock);
    for (int i = 0; i < SLOTS; i++)
        l->slots[i].ready = false;
    while (l->first != NULL)
        drop_run(l);
    l->claimed = 0;
    l->returned = 0;
    l->freed = 0;
    __atomic_store_n(&l->cancel, false, __ATOMIC_RELAXED);
    append(l,
           (struct run){
               .ids = ids, .count = count, .epoch = epoch, .batch = l->batch, .share = l->share});
    pthread_mutex_unlock(&l->lock);
    return BASE_OK;
}

base_status data_loader_queue(struct data_loader *l, uint32_t epoch, const uint32_t *ids,
                              size_t count, uint32_t batch)
{
    uint32_t *owned;

    if (batch == 0 || batch > data_share_most(l->share, l->batch))
        return base_fail(BASE_ERR_USAGE, "batches of %u samples; this loader has room for 1 to %u",
                         batch, data_share_most(l->share, l->batch));
    owned = base_calloc(count, sizeof *owned);
    memcpy(owned, ids, count * sizeof *owned);
    pthread_mutex_lock(&l->lock);
    append(l, (struct run){
                  .owned = owned, .ids = owned, .count = count, .epoch = epoch, .batch = batch});
    pthread_mutex_unlock(&l->lock);
    return BASE_OK;
}

base_status data_loader_next(struct data_loader *l, struct data_batch *batch_p)
{
    base_status st = BASE_OK;
    struct slot *slot;

    *batch_p = (struct data_batch){0};
    pthread_mutex_lock(&l->lock);
    if (l->freed < l->returned) { /* asking for a batch gives back the one before it */
        l->slots[l->freed++ % SLOTS].ready = false;
        pthread_cond_signal(&l->work);
    }
    if (l->returned == l->claimed && l->first == NULL)
        goto out;
    slot = &l->slots[l->returned % SLOTS];
    while (!slot->ready)
        pthread_cond_wait(&l->done, &l->lock);
    if (slot->st != BASE_OK)
        TRY(base_fail(slot->st, "%s", slot->message));
    l->returned++;
    *batch_p = (struct data_batch){.count = slot->count,
                                   .whole = slot->whole,
                                   .epoch = slot->epoch,
                                   .x = slot->x,
                                   .labels = slot->labels,
                                   .numbers = slot->numbers,
                                   .ids = slot->ids,
                                   .bad = slot->bad};
out:
    pthread_mutex_unlock(&l->lock);
    return st;
}
