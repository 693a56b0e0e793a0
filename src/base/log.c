/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum base_level shown = BASE_INFO;
static bool drawn;
static double drawn_at;

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

static void wipe(void)
{
    if (drawn)
        fputs("\r\033[K", stderr);
    drawn = false;
}

static void line(enum base_level level, const char *prefix, const char *format, va_list args)
{
    if (level > shown)
        return;
    pthread_mutex_lock(&lock);
    wipe();
    fputs(prefix, stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
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

void base_progress(bool force, const char *format, ...)
{
    va_list args;
    double now = base_now();

    if (shown < BASE_INFO || !base_log_terminal() || (!force && now - drawn_at < 0.1))
        return;
    pthread_mutex_lock(&lock);
    wipe();
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fflush(stderr);
    drawn = true;
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
