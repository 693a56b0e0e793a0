/* SPDX-License-Identifier: MIT
 *
 * One URL into one new file, through libcurl: http and https, few redirects and never from https
 * to http, a limit on bytes, and time-outs on connecting and on standing still, so that it always
 * ends. PACELINE_STALL_SECONDS changes the time-outs. The caller owns the file, whole or not.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "data/data_get_private.h"

enum {
    STALL_SECONDS = 30,
    SLOWEST = 100,     /* bytes a second … */
    SLOW_SECONDS = 60, /* … over so long: a trickle counts as standing still */
    REDIRECTS = 5,
    BAR = 24,
};
static const double LINE_SECONDS = 10; /* between lines where there is no terminal */

struct transfer {
    const char *name, *path;
    FILE *file;
    uint64_t got, limit;
    double started, said, moved; /* moved: when bytes last came */
    long stall;                  /* seconds without a byte that are too many */
    bool too_large, unwritable, stalled;
};

static size_t on_bytes(char *bytes, size_t size, size_t count, void *state)
{
    struct transfer *t = state;

    (void)size; /* always 1 */
    if (count > t->limit - t->got) {
        t->too_large = true;
        return 0;
    }
    if (fwrite(bytes, 1, count, t->file) != count) {
        t->unwritable = true;
        return 0;
    }
    t->got += count;
    t->moved = base_now();
    return count;
}

static void draw(struct transfer *t, double done, double total)
{
    double seconds = base_now() - t->started, share = done / total;
    double rate = seconds > 0 ? done / seconds : 0;
    int full = (int)(share * BAR);
    char bar[BAR + 1];

    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)full);
    bar[BAR] = '\0';
    base_progress(false, "%s [%s] %3.0f %%  %.1f of %.1f MB  %.1f MB/s  ETA %.0f s", t->name, bar,
                  share * 100, done / 1e6, total / 1e6, rate / 1e6,
                  rate > 0 ? (total - done) / rate : 0);
}

static int on_progress(void *state, curl_off_t total, curl_off_t done, curl_off_t up_total,
                       curl_off_t up)
{
    struct transfer *t = state;
    double now = base_now();

    (void)up_total;
    (void)up;
    if (total > 0 && done <= total)
        draw(t, (double)done, (double)total);
    else if (done > 0)
        base_progress(false, "%s  %.1f MB", t->name, (double)done / 1e6);
    if (!base_log_terminal() && now - t->said >= LINE_SECONDS) {
        base_info("%s: %.1f MB so far", t->name, (double)done / 1e6);
        t->said = now;
    }
    t->stalled = now - t->moved >= (double)t->stall;
    return t->stalled ? 1 : 0; /* 1 ends the transfer */
}

static long stall_seconds(void)
{
    const char *text = getenv("PACELINE_STALL_SECONDS");
    long seconds = text != NULL ? strtol(text, NULL, 10) : 0;

    return seconds > 0 && seconds <= 3600 ? seconds : STALL_SECONDS;
}

static void set_options(CURL *curl, const char *url, struct transfer *t, char *reason)
{
    const char *protocols = strncmp(url, "https:", 6) == 0 ? "https" : "http,https";

    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, protocols);
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)REDIRECTS);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, t->stall);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)SLOWEST);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SLOW_SECONDS);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "paceline/" PACELINE_VERSION);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, t);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
}

static base_status perform(const char *url, struct transfer *t)
{
    char reason[CURL_ERROR_SIZE] = "";
    CURL *curl = curl_easy_init();
    CURLcode code;

    if (curl == NULL)
        return base_fail(BASE_ERR_MEMORY, "there is no memory for a download");
    set_options(curl, url, t, reason);
    code = curl_easy_perform(curl);
    curl_easy_cleanup(curl);
    base_progress_clear();
    if (t->too_large)
        return base_fail(BASE_ERR_NETWORK, "more than the %llu bytes allowed arrived",
                         (unsigned long long)t->limit);
    if (t->unwritable)
        return base_fail(BASE_ERR_IO, "cannot write %s: %m", t->path);
    if (t->stalled)
        return base_fail(BASE_ERR_NETWORK, "nothing arrived for %ld seconds", t->stall);
    if (code != CURLE_OK)
        return base_fail(BASE_ERR_NETWORK, "%s",
                         reason[0] != '\0' ? reason : curl_easy_strerror(code));
    return BASE_OK;
}

base_status data_fetch_url(const char *name, const char *url, uint64_t limit, const char *path)
{
    base_status st = BASE_OK;
    double now = base_now();
    struct transfer t = {.name = name,
                         .path = path,
                         .limit = limit,
                         .started = now,
                         .said = now,
                         .moved = now,
                         .stall = stall_seconds()};

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return base_fail(BASE_ERR_MEMORY, "libcurl does not start");
    base_info("%s: fetching %s", name, url);
    if ((t.file = fopen(path, "wxe")) == NULL)
        TRY(base_fail(BASE_ERR_IO, "cannot write %s: %m", path));
    TRY(perform(url, &t));
    if (fflush(t.file) != 0)
        TRY(base_fail(BASE_ERR_IO, "cannot write %s: %m", path));
    base_info("%s: %.1f MB in %.1f s", name, (double)t.got / 1e6, base_now() - t.started);
out:
    if (t.file != NULL)
        fclose(t.file);
    curl_global_cleanup();
    return st;
}
