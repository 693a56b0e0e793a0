/* SPDX-License-Identifier: MIT
 *
 * Messages and fields are those of tensorflow/core/util/event.proto and framework/summary.proto.
 */
#include "train/tensorboard.h"

#include <endian.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spool.h"
#include "base/str.h"
#include "model/protobuf.h"

enum { HEADER = 12 };                                                    /* of a record */
enum { WALL_TIME = 1, STEP = 2, VERSION = 3, SUMMARY = 5, SESSION = 7 }; /* of an Event */
enum { SESSION_STATUS = 1, SESSION_START = 1 };                          /* of a SessionLog */
enum { VALUE = 1, TAG = 1, SIMPLE = 2, HISTOGRAM = 5 };                  /* of Summary and Value */
enum { MIN = 1, MAX, COUNT, SUM, SQUARES, LIMITS, BUCKETS };             /* of a HistogramProto */

struct train_tensorboard {
    char *folder, *name; /* RUN/tensorboard; the files' name */
    struct base_spool *scalars, *histograms;
    struct base_str record; /* the newest; its memory is used again */
    unsigned long dropped;
};

/* ---- records ---- */

static uint32_t masked(const void *bytes, size_t count)
{
    uint32_t crc = base_crc32c(0, bytes, count);

    return htole32((crc >> 15 | crc << 17) + 0xa282ead8u);
}

static double wall_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static struct base_str *begin(struct train_tensorboard *b, int64_t step)
{
    static const char header[HEADER];

    b->record.length = 0;
    base_str_append(&b->record, header, HEADER);
    model_pb_double(&b->record, WALL_TIME, wall_time());
    model_pb_int(&b->record, STEP, step);
    return &b->record;
}

static void end(struct train_tensorboard *b, struct base_spool *file)
{
    struct base_str *r = &b->record;
    uint64_t length = htole64(r->length - HEADER);
    uint32_t crc = masked(&length, sizeof length);

    memcpy(r->text, &length, sizeof length);
    memcpy(r->text + sizeof length, &crc, sizeof crc);
    crc = masked(r->text + HEADER, r->length - HEADER);
    base_str_append(r, (const char *)&crc, sizeof crc);
    b->dropped += !base_spool_put(file, r->text, r->length);
}

/* ---- files ---- */

static void put_restart(struct train_tensorboard *b, struct base_spool *file, int64_t step)
{
    struct base_str *r = begin(b, step + 1);

    model_pb_length(r, SESSION, 2);
    model_pb_int(r, SESSION_STATUS, SESSION_START);
    end(b, file);
}

static base_status open_file(struct train_tensorboard *b, const char *kind, int64_t step,
                             struct base_spool **file_p)
{
    base_status st = BASE_OK;
    char *folder = base_format("%s/%s", b->folder, kind),
         *path = base_format("%s/%s", folder, b->name);

    TRY(base_make_dirs(folder));
    TRY(base_spool_open(path, file_p));
    model_pb_text(begin(b, 0), VERSION, "brain.Event:2");
    end(b, *file_p);
    if (step > 0)
        put_restart(b, *file_p, step);
out:
    base_free(path);
    base_free(folder);
    return st;
}

base_status train_tensorboard_open(const char *folder, int64_t step,
                                   struct train_tensorboard **board_p)
{
    base_status st = BASE_OK;
    struct train_tensorboard *b = base_calloc(1, sizeof *b);
    char host[64] = "";

    *board_p = NULL;
    gethostname(host, sizeof host - 1);
    b->folder = base_format("%s/tensorboard", folder);
    /* In the order of their names, which is that of their times, TensorBoard reads files. */
    b->name = base_format("events.out.tfevents.%010lld.%s.%d", (long long)wall_time(), host,
                          (int)getpid());
    TRY(open_file(b, "scalars", step, &b->scalars));
    *board_p = b;
    b = NULL;
out:
    train_tensorboard_close(b);
    return st;
}

void train_tensorboard_close(struct train_tensorboard *b)
{
    if (b == NULL)
        return;
    if (base_spool_close(b->scalars) != BASE_OK)
        base_warn("--tensorboard: %s", base_message());
    if (base_spool_close(b->histograms) != BASE_OK)
        base_warn("--tensorboard: %s", base_message());
    if (b->dropped > 0)
        base_warn("--tensorboard: %lu records found the buffer full and are missing", b->dropped);
    base_str_fini(&b->record);
    base_free(b->folder);
    base_free(b->name);
    base_free(b);
}

/* ---- points ---- */

/* Bytes of a field of variable length. */
static uint64_t field_size(uint64_t length)
{
    uint64_t size = 1 + length;

    for (uint64_t rest = length; rest > 0x7f; rest >>= 7)
        size++;
    return size + 1;
}

static uint64_t scalar_size(const struct train_scalar *s)
{
    return field_size(strlen(s->tag)) + 1 + sizeof(float);
}

void train_tensorboard_scalars(struct train_tensorboard *b, int64_t step,
                               const struct train_scalar *scalars, int count)
{
    uint64_t size = 0;
    struct base_str *r;

    if (b == NULL)
        return;
    for (int i = 0; i < count; i++)
        size += isfinite(scalars[i].value) ? field_size(scalar_size(&scalars[i])) : 0;
    if (size == 0)
        return;
    r = begin(b, step);
    model_pb_length(r, SUMMARY, size);
    for (int i = 0; i < count; i++) {
        if (!isfinite(scalars[i].value))
            continue;
        model_pb_length(r, VALUE, scalar_size(&scalars[i]));
        model_pb_text(r, TAG, scalars[i].tag);
        model_pb_float(r, SIMPLE, (float)scalars[i].value);
    }
    end(b, b->scalars);
}

static void put_histogram(struct base_str *r, const struct train_histogram *h, int bins)
{
    double width = (h->high - h->low) / bins;

    model_pb_double(r, MIN, h->low);
    model_pb_double(r, MAX, h->high);
    model_pb_double(r, COUNT, (double)h->count);
    model_pb_double(r, SUM, h->sum);
    model_pb_double(r, SQUARES, h->squares);
    model_pb_length(r, LIMITS, (uint64_t)bins * sizeof(double));
    for (int i = 0; i < bins; i++)
        model_pb_packed(r, i + 1 < bins ? h->low + (i + 1) * width : h->high);
    model_pb_length(r, BUCKETS, (uint64_t)bins * sizeof(double));
    for (int i = 0; i < bins; i++)
        model_pb_packed(r, (double)h->bins[i]);
}

void train_tensorboard_histogram(struct train_tensorboard *b, int64_t step, const char *tag,
                                 const struct train_histogram *h)
{
    /* All values are the same: they are in the first bin, and one is enough. */
    int bins = h->high > h->low ? h->bin_count : 1;
    uint64_t inner = 5 * (1 + sizeof(double)) + 2 * field_size((uint64_t)bins * sizeof(double));
    struct base_str *r;

    if (b == NULL)
        return;
    if (b->histograms == NULL && open_file(b, "histograms", step - 1, &b->histograms) != BASE_OK) {
        b->dropped++;
        return;
    }
    r = begin(b, step);
    model_pb_length(r, SUMMARY, field_size(field_size(strlen(tag)) + field_size(inner)));
    model_pb_length(r, VALUE, field_size(strlen(tag)) + field_size(inner));
    model_pb_text(r, TAG, tag);
    model_pb_length(r, HISTOGRAM, inner);
    put_histogram(r, h, bins);
    end(b, b->histograms);
}

void train_tensorboard_flush(struct train_tensorboard *b)
{
    if (b == NULL)
        return;
    base_spool_flush(b->scalars);
    if (b->histograms != NULL)
        base_spool_flush(b->histograms);
}

void train_tensorboard_back(struct train_tensorboard *b, int64_t step)
{
    if (b == NULL)
        return;
    put_restart(b, b->scalars, step);
    if (b->histograms != NULL)
        put_restart(b, b->histograms, step);
}
