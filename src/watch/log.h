/* SPDX-License-Identifier: MIT
 *
 * The newest lines that the workers of a run have logged (log-ID.txt of its folder), in memory of
 * fixed size. What a file has gained since the last look is read, at most 16 KB of it.
 */
#ifndef WATCH_LOG_H
#define WATCH_LOG_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { WATCH_LOG_LINES = 200, WATCH_LOG_FILES = 256, WATCH_LOG_LENGTH = 400 };
enum { WATCH_LOG_TIME = 20 }; /* bytes of "2026-01-31T23:59:59Z" */

struct watch_line {
    int64_t worker; /* 0: a training in one process */
    char *text;     /* UTF-8 is not promised */
    /* What it begins with, or else the time of the line before it in its file. */
    char time[WATCH_LOG_TIME + 1];
};

struct watch_log {                            /* init by = {0} */
    struct watch_line lines[WATCH_LOG_LINES]; /* from the oldest on */
    size_t count, read;
    struct watch_log_file {
        int64_t worker;
        off_t at;                      /* where the next line begins */
        char time[WATCH_LOG_TIME + 1]; /* of its newest line */
    } files[WATCH_LOG_FILES];
    size_t file_count;
};

/* Returns the number of lines that are new. */
size_t watch_log_read(struct watch_log *log, const char *folder);
void watch_log_fini(struct watch_log *log);

/* Takes the whole lines of these bytes; returns how many bytes they are. Public for tests. */
size_t watch_log_take(struct watch_log *log, int64_t worker, const char *bytes, size_t count);

#endif
