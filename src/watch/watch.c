/* SPDX-License-Identifier: MIT */
#include "watch/watch.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "base/thread.h"
#include "http/live.h"
#include "http/page.h"
#include "http/token.h"
#include "report/page.h"
#include "watch/metrics.h"
#include "watch/parts.h"

static const double DRAIN = 2; /* seconds that requests under way have left at the end */

struct watch {
    const struct watch_setup *setup;
    struct base_mutex lock; /* of the next two: three threads use them */
    struct watch_look look;
    struct watch_parts parts;
    struct http_live *live;
    struct http_server *server;
    char *token, *page;
};

/* ---- answers ---- */

static char *error_body(void *context, const struct http_request *request, int *status,
                        const char *message)
{
    const char *words = message != NULL ? message
                        : *status == 404
                            ? "there is nothing; there are /, /live, /report and /metrics"
                            : "the request is refused";
    json_t *error = json_pack("{s:i, s:{s:i, s:o}}", "schema", 1, "error", "status", *status,
                              "message", base_json_text(words));
    char *text = json_dumps(error, JSON_COMPACT);

    (void)context;
    (void)request;
    json_decref(error);
    return text;
}

static void show_page(void *context, struct http_request *request)
{
    http_answer_page(request, ((struct watch *)context)->page);
}

static void show_live(void *context, struct http_request *request)
{
    http_live_open(((struct watch *)context)->live, request);
}

static void show_report(void *context, struct http_request *request)
{
    struct watch *w = context;
    struct base_str html = {0};
    struct report_page_run run;
    char made[REPORT_MADE];
    size_t count;

    report_made(made);
    base_mutex_lock(&w->lock);
    run = (struct report_page_run){.story = w->look.story};
    run.story.follows = false; /* a page of this moment */
    report_page(&(struct report_page){.runs = &run, .count = 1, .made = made}, &html);
    base_mutex_unlock(&w->lock);
    count = html.length;
    http_add_header(request, "Content-Security-Policy",
                    "default-src 'none'; style-src 'unsafe-inline'; img-src data:");
    http_answer(request, 200, "text/html; charset=utf-8", base_str_take(&html), count);
}

static void show_metrics(void *context, struct http_request *request)
{
    struct watch *w = context;
    struct base_str text = {0};
    size_t count;

    base_mutex_lock(&w->lock);
    watch_metrics(&w->look, &text);
    base_mutex_unlock(&w->lock);
    count = text.length;
    http_answer(request, 200, "text/plain; version=0.0.4; charset=utf-8", base_str_take(&text),
                count);
}

static const struct http_route routes[] = {
    {"GET", "/", show_page, .open = true, .help = "the page"},
    {"GET", "/live", show_live, .help = "what the page shows, as server-sent events"},
    {"GET", "/report", show_report, .help = "the run as it is now"},
    {"GET", "/metrics", show_metrics, .help = "for Prometheus"},
    {0},
};

static char *tell(void *context, bool first)
{
    struct watch *w = context;
    char *event;

    base_mutex_lock(&w->lock);
    event = first ? watch_parts_all(&w->parts, &w->look) : watch_parts_draw(&w->parts, &w->look);
    base_mutex_unlock(&w->lock);
    return event;
}

/* ---- start ---- */

/* The page has the report's style in the place of a mark. base_free. */
static char *make_page(void)
{
    static const char mark[] = "@REPORT_CSS@";
    const char *at = strstr(watch_page, mark);

    return base_format("%.*s%s%s", (int)(at - watch_page), watch_page, report_page_css,
                       at + sizeof mark - 1);
}

static base_status open_server(struct watch *w)
{
    struct http_setup setup = http_setup_defaults;
    base_status st;

    setup.host = w->setup->host;
    setup.port = w->setup->port < 0 ? WATCH_PORT : (int)w->setup->port;
    setup.routes = routes;
    setup.context = w;
    setup.error_body = error_body;
    setup.token = w->token;
    setup.body_limit = 1024; /* no request has one */
    setup.connections = 64;
    /* From elsewhere, one client alone cannot lock the others out. */
    setup.connections_per_address = http_is_loopback(setup.host) ? setup.connections : 16;
    st = http_server_open(&setup, &w->server);
    if (st == BASE_ERR_IO && w->setup->port < 0) {
        setup.port = 0;
        st = http_server_open(&setup, &w->server);
    }
    return st;
}

static base_status tell_ready(const struct watch *w)
{
    base_status st = BASE_OK;
    const char *host = w->setup->host;
    bool v6 = strchr(host, ':') != NULL;
    char *address = base_format("http://%s%s%s:%d", v6 ? "[" : "", host, v6 ? "]" : "",
                                http_server_port(w->server)),
         *ready = base_format("{\"watch\":\"%s\"}", address);

    if (w->setup->ready_file != NULL)
        TRY(base_file_replace(w->setup->ready_file, ready, strlen(ready)));
    base_info("run %s (%s): open %s", w->look.run.name, w->look.status, address);
out:
    base_free(ready);
    base_free(address);
    return st;
}

static base_status start(struct watch *w)
{
    base_status st = BASE_OK;
    const struct watch_setup *s = w->setup;

    TRY(watch_look_open(s->runs_dir, s->run, &w->look));
    TRY(http_token_find(s->token_file, "PACELINE_WATCH_TOKEN", &w->token));
    if (!http_is_loopback(s->host) && w->token == NULL)
        TRY(base_fail(BASE_ERR_USAGE,
                      "others can reach %s, so those who look need a token: --token-file FILE "
                      "(`paceline token FILE` makes one), or PACELINE_WATCH_TOKEN",
                      s->host));
    w->page = make_page();
    TRY(http_live_new(1, tell, w, &w->live));
    TRY(open_server(w));
    TRY(tell_ready(w));
out:
    return st;
}

/* ---- until a signal ---- */

static void look_again(struct watch *w)
{
    bool ended = watch_look_ended(&w->look);

    base_mutex_lock(&w->lock);
    watch_look_again(&w->look);
    base_mutex_unlock(&w->lock);
    if (!ended && watch_look_ended(&w->look))
        base_info("run %s has ended: %s, %.0f steps", w->look.run.name, w->look.status,
                  w->look.story.steps);
}

static void close_all(struct watch *w)
{
    if (w->live != NULL)
        http_live_stop(w->live); /* pages are told how it ended */
    if (w->server != NULL)
        http_server_drain(w->server, DRAIN);
    http_server_close(w->server);
    http_live_free(w->live);
    watch_parts_fini(&w->parts);
    watch_look_close(&w->look);
    base_mutex_fini(&w->lock);
    base_free(w->token);
    base_free(w->page);
}

base_status watch_run(const struct watch_setup *setup)
{
    base_status st = BASE_OK;
    struct watch *w = base_calloc(1, sizeof *w);
    const struct timespec second = {.tv_sec = 1};
    sigset_t before;

    w->setup = setup;
    base_mutex_init(&w->lock);
    base_stop_install(NULL);
    base_stop_block(&before);
    TRY(start(w));
    while (base_stop_signal() == 0) {
        ppoll(NULL, 0, &second, &before);
        look_again(w);
    }
out:
    close_all(w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    base_free(w);
    return st;
}
