/* SPDX-License-Identifier: MIT */
#include "base/events.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

enum { RING = 1 << 20, LINE = 16384 };
static const double PAUSE = 0.05; /* seconds between two writes */

struct base_events {
    FILE *file;
    char *path;
    struct base_thread writer;
    _Atomic size_t head; /* bytes ever put in, moved by the producer only */
    _Atomic size_t tail; /* bytes ever taken out, moved under `draining` only */
    struct base_mutex draining;
    struct base_signal ends; /* with `draining` */
    bool closing;            /* under `draining` */
    unsigned long dropped;
    int write_error; /* errno of the first failed write; read after the writer has ended */
    char line[LINE];
    char ring[RING];
};

/* With `draining` held. */
static void drain(struct base_events *e)
{
    size_t head, tail;

    head = atomic_load_explicit(&e->head, memory_order_acquire);
    tail = atomic_load_explicit(&e->tail, memory_order_relaxed);
    while (tail != head) {
        size_t at = tail % RING, count = head - tail;

        if (count > RING - at)
            count = RING - at;
        if (fwrite(e->ring + at, 1, count, e->file) != count && e->write_error == 0)
            e->write_error = errno;
        tail += count;
    }
    if (fflush(e->file) != 0 && e->write_error == 0)
        e->write_error = errno;
    atomic_store_explicit(&e->tail, tail, memory_order_release);
}

static void *writer(void *argument)
{
    struct base_events *e = argument;

    base_mutex_lock(&e->draining);
    while (!e->closing) {
        drain(e);
        base_signal_wait(&e->ends, &e->draining, base_now() + PAUSE);
    }
    drain(e);
    base_mutex_unlock(&e->draining);
    return NULL;
}

/* A process that was killed may have left half a line. */
static base_status cut_torn_line(FILE *file, const char *path)
{
    char tail[LINE];
    off_t size = fseeko(file, 0, SEEK_END) == 0 ? ftello(file) : -1;
    size_t count = size < LINE ? (size_t)size : LINE, keep;

    if (size <= 0) /* new, or no file but a device */
        return BASE_OK;
    if (fseeko(file, -(off_t)count, SEEK_END) != 0 || fread(tail, 1, count, file) != count)
        return base_fail(BASE_ERR_IO, "cannot read %s: %m", path);
    for (keep = count; keep > 0 && tail[keep - 1] != '\n';)
        keep--;
    if (keep < count && ftruncate(fileno(file), size - (off_t)(count - keep)) != 0)
        return base_fail(BASE_ERR_IO, "cannot repair %s: %m", path);
    return BASE_OK;
}

base_status base_events_open(const char *path, struct base_events **events_p)
{
    base_status st = BASE_OK;
    struct base_events *e = base_calloc(1, sizeof *e);
    struct stat info;

    *events_p = NULL;
    base_mutex_init(&e->draining);
    base_signal_init(&e->ends);
    e->path = base_strdup(path);
    if ((e->file = fopen(path, "a+e")) == NULL)
        TRY(base_fail(BASE_ERR_IO, "cannot write %s: %m", path));
    if (fstat(fileno(e->file), &info) == 0 && S_ISFIFO(info.st_mode))
        TRY(base_fail(BASE_ERR_IO, "%s is a pipe, and writing to it may never end; remove it",
                      path));
    TRY(cut_torn_line(e->file, path));
    TRY(base_thread_start(&e->writer, "events", writer, e));
    *events_p = e;
    e = NULL;
out:
    if (e != NULL) {
        if (e->file != NULL)
            fclose(e->file);
        base_free(e->path);
        base_free(e);
    }
    return st;
}

static void put(struct base_events *e, const char *bytes, size_t count)
{
    size_t head = atomic_load_explicit(&e->head, memory_order_relaxed);
    size_t tail = atomic_load_explicit(&e->tail, memory_order_acquire);
    size_t at = head % RING, first = count;

    if (RING - (head - tail) < count) {
        e->dropped++;
        return;
    }
    if (first > RING - at)
        first = RING - at;
    memcpy(e->ring + at, bytes, first);
    memcpy(e->ring, bytes + first, count - first);
    atomic_store_explicit(&e->head, head + count, memory_order_release);
}

void base_event(struct base_events *e, const char *format, ...)
{
    va_list args;
    int length;

    if (e == NULL)
        return;
    va_start(args, format);
    length = vsnprintf(e->line, LINE - 1, format, args);
    va_end(args);
    if (length < 0 || length >= LINE - 1) {
        e->dropped++;
        return;
    }
    e->line[length] = '\n';
    put(e, e->line, (size_t)length + 1);
}

void base_events_flush(struct base_events *e)
{
    if (e == NULL)
        return;
    base_mutex_lock(&e->draining);
    drain(e);
    base_mutex_unlock(&e->draining);
}

base_status base_events_close(struct base_events *e)
{
    base_status st = BASE_OK;

    if (e == NULL)
        return st;
    base_mutex_lock(&e->draining);
    e->closing = true;
    base_signal_wake(&e->ends);
    base_mutex_unlock(&e->draining);
    base_thread_join(&e->writer);
    if (e->dropped > 0)
        fprintf(e->file, "{\"event\":\"dropped\",\"count\":%lu}\n", e->dropped);
    if (fclose(e->file) != 0 && e->write_error == 0)
        e->write_error = errno;
    if (e->write_error != 0) {
        errno = e->write_error;
        st = base_fail(BASE_ERR_IO, "cannot write %s: %m", e->path);
    }
    base_free(e->path);
    base_free(e);
    return st;
}
