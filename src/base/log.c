/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum base_level shown = BASE_INFO;
static int drawn; /* columns of the progress line; 0: there is none */
static double drawn_at;
static FILE *copy; /* of all lines; NULL: none */

void base_log_level(enum base_level level)
{
    shown = level;
}

bool base_log_terminal(void)
{
    static _Atomic int known; /* asked once: progress is drawn inside the training loop */

    if (known == 0)
        known = isatty(STDERR_FILENO) == 1 ? 1 : -1;
    return known > 0;
}

bool base_log_color(void)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

    if (no_color != NULL && no_color[0] != '\0')
        return false;
    return base_log_terminal() && term != NULL && strcmp(term, "dumb") != 0;
}

static int terminal_columns(void)
{
    struct winsize size = {0};

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* A terminal that became narrower has broken the line into several rows. */
static void wipe(void)
{
    if (drawn == 0)
        return;
    fputc('\r', stderr);
    for (int rows = (drawn - 1) / terminal_columns(); rows > 0; rows--)
        fputs("\033[A", stderr);
    fputs("\033[J", stderr);
    drawn = 0;
}

base_status base_log_copy(const char *path)
{
    base_status st = BASE_OK;

    pthread_mutex_lock(&lock);
    if (copy != NULL)
        fclose(copy);
    copy = fopen(path, "ae");
    if (copy == NULL)
        st = base_fail(BASE_ERR_IO, "cannot write %s: %m", path);
    else
        setvbuf(copy, NULL, _IOLBF, 0);
    pthread_mutex_unlock(&lock);
    return st;
}

static void write_copy(enum base_level level, const char *format, va_list args)
{
    time_t now = time(NULL);
    struct tm utc;
    char when[32];

    gmtime_r(&now, &utc);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ ", &utc);
    fputs(when, copy);
    fputs(level == BASE_WARN ? "warning: " : "", copy);
    vfprintf(copy, format, args);
    fputc('\n', copy);
}

static void line(enum base_level level, const char *prefix, const char *format, va_list args)
{
    va_list again;

    pthread_mutex_lock(&lock);
    if (copy != NULL) {
        va_copy(again, args);
        write_copy(level, format, again);
        va_end(again);
    }
    if (level <= shown) {
        wipe();
        fputs(prefix, stderr);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
    }
    pthread_mutex_unlock(&lock);
}

void base_info(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    line(BASE_INFO, "", format, args);
    va_end(args);
}

void base_relay(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    line(BASE_WARN, "", format, args);
    va_end(args);
}

void base_warn(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    line(BASE_WARN, base_log_color() ? "\033[33mwarning:\033[0m " : "warning: ", format, args);
    va_end(args);
}

/* Another process shows what this one says, on its terminal. */
static bool is_relayed(void)
{
    static _Atomic int known;

    if (known == 0)
        known = getenv("PACELINE_PROGRESS") != NULL ? 1 : -1;
    return known > 0;
}

bool base_progress_shown(void)
{
    return is_relayed() || base_log_terminal();
}

/* Cuts UTF-8 text to `most` characters and returns how many there are. */
static int cut_to(char *text, int most)
{
    int count = 0;

    for (; *text != '\0'; text++)
        if (((unsigned char)*text & 0xc0) != 0x80 && count++ == most) {
            *text = '\0';
            return most;
        }
    return count;
}

void base_progress(bool force, const char *format, ...)
{
    va_list args;
    double now = base_now();
    bool relayed = is_relayed();
    char text[512];

    if (shown < BASE_INFO || !base_progress_shown() || (!force && now - drawn_at < 0.1))
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&lock);
    if (relayed) {
        fprintf(stderr, "%c%s\n", BASE_PROGRESS_MARK, text);
    } else {
        wipe();
        drawn = cut_to(text, terminal_columns() - 3); /* room for the echo of Ctrl-C, "^C" */
        fputs(text, stderr);
    }
    fflush(stderr);
    drawn_at = now;
    pthread_mutex_unlock(&lock);
}

void base_progress_clear(void)
{
    pthread_mutex_lock(&lock);
    wipe();
    fflush(stderr);
    pthread_mutex_unlock(&lock);
}
