/* SPDX-License-Identifier: MIT */
#include "watch/log.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

enum { MOST = 16 << 10 }; /* bytes of a file a look */

/* A line that is older than 200 others is left out. */
static void add_line(struct watch_log *log, struct watch_log_file *file, const char *text,
                     size_t length)
{
    struct watch_line line = {.worker = file->worker};
    size_t at = log->count;

    if (length >= WATCH_LOG_TIME && text[10] == 'T' && text[WATCH_LOG_TIME - 1] == 'Z')
        memcpy(file->time, text, WATCH_LOG_TIME);
    memcpy(line.time, file->time, sizeof line.time);
    log->read++;
    while (at > 0 && strcmp(log->lines[at - 1].time, line.time) > 0)
        at--;
    if (log->count == WATCH_LOG_LINES) {
        if (at == 0)
            return;
        base_free(log->lines[0].text);
        at--;
        memmove(log->lines, log->lines + 1, at * sizeof *log->lines);
    } else {
        memmove(log->lines + at + 1, log->lines + at, (log->count - at) * sizeof *log->lines);
        log->count++;
    }
    line.text = base_strndup(text, length < WATCH_LOG_LENGTH ? length : WATCH_LOG_LENGTH);
    log->lines[at] = line;
}

/* NULL: there are too many files. */
static struct watch_log_file *file_of(struct watch_log *log, int64_t worker)
{
    for (size_t i = 0; i < log->file_count; i++)
        if (log->files[i].worker == worker)
            return &log->files[i];
    if (log->file_count == WATCH_LOG_FILES)
        return NULL;
    log->files[log->file_count] = (struct watch_log_file){.worker = worker};
    return &log->files[log->file_count++];
}

size_t watch_log_take(struct watch_log *log, int64_t worker, const char *bytes, size_t count)
{
    struct watch_log_file *file = file_of(log, worker);
    size_t taken = 0;
    const char *end;

    while (file != NULL && (end = memchr(bytes + taken, '\n', count - taken)) != NULL) {
        size_t length = (size_t)(end - bytes) - taken;

        if (length > 0)
            add_line(log, file, bytes + taken, length);
        taken += length + 1;
    }
    return taken;
}

static void read_on(struct watch_log *log, int64_t worker, const char *path)
{
    struct watch_log_file *file = file_of(log, worker);
    off_t *at = file != NULL ? &file->at : NULL;
    char bytes[MOST + 1]; /* with a zero at their end */
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
        bytes[count > 0 ? count : 0] = '\0';
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
    return log->read - before;
}

void watch_log_fini(struct watch_log *log)
{
    for (size_t i = 0; i < log->count; i++)
        base_free(log->lines[i].text);
    *log = (struct watch_log){0};
}
