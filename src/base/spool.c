/* SPDX-License-Identifier: MIT */
#include "base/spool.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

enum { RING = 1 << 20 };
static const double PAUSE = 0.05; /* seconds between two writes */

struct base_spool {
    FILE *file;
    char *path;
    struct base_thread writer;
    _Atomic size_t head; /* bytes ever put in, moved by the producer only */
    _Atomic size_t tail; /* bytes ever taken out, moved under `draining` only */
    struct base_mutex draining;
    struct base_signal ends; /* with `draining` */
    bool closing;            /* under `draining` */
    int write_error;         /* errno of the first failed write; read after the writer has ended */
    char ring[RING];
};

/* With `draining` held. */
static void drain(struct base_spool *s)
{
    size_t head, tail;

    head = atomic_load_explicit(&s->head, memory_order_acquire);
    tail = atomic_load_explicit(&s->tail, memory_order_relaxed);
    while (tail != head) {
        size_t at = tail % RING, count = head - tail;

        if (count > RING - at)
            count = RING - at;
        if (fwrite(s->ring + at, 1, count, s->file) != count && s->write_error == 0)
            s->write_error = errno;
        tail += count;
    }
    if (fflush(s->file) != 0 && s->write_error == 0)
        s->write_error = errno;
    atomic_store_explicit(&s->tail, tail, memory_order_release);
}

static void *writer(void *argument)
{
    struct base_spool *s = argument;

    base_mutex_lock(&s->draining);
    while (!s->closing) {
        drain(s);
        base_signal_wait(&s->ends, &s->draining, base_now() + PAUSE);
    }
    drain(s);
    base_mutex_unlock(&s->draining);
    return NULL;
}

base_status base_spool_open(const char *path, struct base_spool **spool_p)
{
    base_status st = BASE_OK;
    struct base_spool *s = base_calloc(1, sizeof *s);
    struct stat info;

    *spool_p = NULL;
    base_mutex_init(&s->draining);
    base_signal_init(&s->ends);
    s->path = base_strdup(path);
    if ((s->file = fopen(path, "a+e")) == NULL)
        TRY(base_fail(BASE_ERR_IO, "cannot write %s: %m", path));
    if (fstat(fileno(s->file), &info) == 0 && S_ISFIFO(info.st_mode))
        TRY(base_fail(BASE_ERR_IO, "%s is a pipe, and writing to it may never end; remove it",
                      path));
    TRY(base_thread_start(&s->writer, "events", writer, s));
    *spool_p = s;
    s = NULL;
out:
    if (s != NULL) {
        if (s->file != NULL)
            fclose(s->file);
        base_free(s->path);
        base_free(s);
    }
    return st;
}

bool base_spool_put(struct base_spool *s, const void *bytes, size_t count)
{
    size_t head = atomic_load_explicit(&s->head, memory_order_relaxed);
    size_t tail = atomic_load_explicit(&s->tail, memory_order_acquire);
    size_t at = head % RING, first = count;

    if (RING - (head - tail) < count)
        return false;
    if (first > RING - at)
        first = RING - at;
    memcpy(s->ring + at, bytes, first);
    memcpy(s->ring, (const char *)bytes + first, count - first);
    atomic_store_explicit(&s->head, head + count, memory_order_release);
    return true;
}

void base_spool_flush(struct base_spool *s)
{
    base_mutex_lock(&s->draining);
    drain(s);
    base_mutex_unlock(&s->draining);
}

base_status base_spool_close(struct base_spool *s)
{
    base_status st = BASE_OK;

    if (s == NULL)
        return st;
    base_mutex_lock(&s->draining);
    s->closing = true;
    base_signal_wake(&s->ends);
    base_mutex_unlock(&s->draining);
    base_thread_join(&s->writer);
    if (fclose(s->file) != 0 && s->write_error == 0)
        s->write_error = errno;
    if (s->write_error != 0) {
        errno = s->write_error;
        st = base_fail(BASE_ERR_IO, "cannot write %s: %m", s->path);
    }
    base_free(s->path);
    base_free(s);
    return st;
}
