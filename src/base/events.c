/* SPDX-License-Identifier: MIT */
#include "base/events.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/spool.h"

enum { LINE = 16384 };

struct base_events {
    struct base_spool *spool;
    unsigned long dropped;
    char line[LINE];
};

/* A process that was killed may have left half a line. */
static base_status cut_torn_line(const char *path)
{
    base_status st = BASE_OK;
    char tail[LINE];
    struct stat info;
    int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    size_t count, keep;

    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        goto out; /* new, or no file but a device */
    count = info.st_size < LINE ? (size_t)info.st_size : LINE;
    if (pread(fd, tail, count, info.st_size - (off_t)count) != (ssize_t)count)
        TRY(base_fail(BASE_ERR_IO, "cannot read %s: %m", path));
    for (keep = count; keep > 0 && tail[keep - 1] != '\n';)
        keep--;
    if (keep < count && ftruncate(fd, info.st_size - (off_t)(count - keep)) != 0)
        TRY(base_fail(BASE_ERR_IO, "cannot repair %s: %m", path));
out:
    if (fd >= 0)
        close(fd);
    return st;
}

base_status base_events_open(const char *path, struct base_events **events_p)
{
    base_status st = BASE_OK;
    struct base_events *e = base_calloc(1, sizeof *e);

    *events_p = NULL;
    TRY(cut_torn_line(path));
    TRY(base_spool_open(path, &e->spool));
    *events_p = e;
    e = NULL;
out:
    base_free(e);
    return st;
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
    e->dropped += !base_spool_put(e->spool, e->line, (size_t)length + 1);
}

void base_events_flush(struct base_events *e)
{
    if (e != NULL)
        base_spool_flush(e->spool);
}

base_status base_events_close(struct base_events *e)
{
    base_status st;

    if (e == NULL)
        return BASE_OK;
    if (e->dropped > 0) {
        unsigned long dropped = e->dropped;

        base_spool_flush(e->spool); /* makes room for the last line */
        base_event(e, "{\"event\":\"dropped\",\"count\":%lu}", dropped);
    }
    st = base_spool_close(e->spool);
    base_free(e);
    return st;
}
