/* SPDX-License-Identifier: MIT */
#include "watch/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

enum { MOST = 16 << 10, TIME = 20 }; /* bytes of a file a look; of "2026-01-31T23:59:59Z" */

static void add_line(struct watch_log *log, int64_t worker, const char *text, size_t length)
{
    if (log->count == WATCH_LOG_LINES) {
        base_free(log->lines[0].text);
        memmove(log->lines, log->lines + 1, (WATCH_LOG_LINES - 1) * sizeof *log->lines);
        log->count--;
    }
    log->lines[log->count++] = (struct watch_line){
        .worker = worker,
        .text = base_strndup(text, length < WATCH_LOG_LENGTH ? length : WATCH_LOG_LENGTH),
        .number = log->read++};
}

size_t watch_log_take(struct watch_log *log, int64_t worker, const char *bytes, size_t count)
{
    size_t taken = 0;
    const char *end;

    while ((end = memchr(bytes + taken, '\n', count - taken)) != NULL) {
        size_t length = (size_t)(end - bytes) - taken;

        if (length > 0)
            add_line(log, worker, bytes + taken, length);
        taken += length + 1;
    }
    return taken;
}

/* Where reading of this worker's file goes on; NULL: there are too many files. */
static off_t *place_of(struct watch_log *log, int64_t worker)
{
    for (size_t i = 0; i < log->file_count; i++)
        if (log->files[i].worker == worker)
            return &log->files[i].at;
    if (log->file_count == WATCH_LOG_FILES)
        return NULL;
    log->files[log->file_count].worker = worker;
    log->files[log->file_count].at = 0;
    return &log->files[log->file_count++].at;
}

static void read_on(struct watch_log *log, int64_t worker, const char *path)
{
    off_t *at = place_of(log, worker);
    char bytes[MOST];
    const char *from = bytes;
    bool jumps;
    size_t size = 0;
    int fd = -1;
    ssize_t count = 0;

    if (at == NULL)
        return;
    if (base_open_regular(path, &fd, &size) == BASE_OK && (off_t)size != *at) {
        jumps = (off_t)size < *at || (off_t)size - *at > MOST;
        *at = !jumps ? *at : size > MOST ? (off_t)size - MOST : 0;
        count = pread(fd, bytes, MOST, *at);
        if (count > 0 && jumps && *at > 0) { /* into the middle of a line */
            const char *end = memchr(bytes, '\n', (size_t)count);

            from = end != NULL ? end + 1 : bytes + count;
        }
        if (count > 0)
            *at += from - bytes +
                   (off_t)watch_log_take(log, worker, from, (size_t)(bytes + count - from));
    }
    if (fd >= 0)
        close(fd);
}

static int by_time(const void *a, const void *b)
{
    const struct watch_line *x = a, *y = b;
    int order = strncmp(x->text, y->text, TIME);

    return order != 0 ? order : (x->number > y->number) - (x->number < y->number);
}

size_t watch_log_read(struct watch_log *log, const char *folder)
{
    size_t before = log->read, count = 0;
    char **names = NULL;

    if (base_list_dir(folder, &names, &count) != BASE_OK)
        return 0;
    for (size_t i = 0; i < count; i++) {
        char *path = base_format("%s/%s", folder, names[i]);
        int worker, end = 0;

        if (sscanf(names[i], "log-%9d.txt%n", &worker, &end) == 1 && end > 0 &&
            names[i][end] == '\0')
            read_on(log, worker, path);
        base_free(path);
    }
    base_names_free(names, count);
    if (log->read > before) /* several files were read one after the other */
        qsort(log->lines, log->count, sizeof *log->lines, by_time);
    return log->read - before;
}

void watch_log_fini(struct watch_log *log)
{
    for (size_t i = 0; i < log->count; i++)
        base_free(log->lines[i].text);
    *log = (struct watch_log){0};
}
