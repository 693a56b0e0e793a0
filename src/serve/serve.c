/* SPDX-License-Identifier: MIT
 *
 * Start and end of the server: models, ports, the words at the start, the signal, the drain.
 */
#include "serve/serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "nn/threads.h"
#include "serve/answer.h"
#include "serve/serve_private.h"

static const char *const port_names[SERVE_PORTS] = {"inference", "management", "metrics"};

/* ---- models of the command line ---- */

/* "NAME=PLACE", or a place, whose last segment is then the name. */
static base_status split_model(const char *text, char **name_p, const char **place_p)
{
    const char *equals = strchr(text, '='), *slash;
    size_t length = strlen(text);

    if (equals != NULL) {
        *name_p = base_strndup(text, (size_t)(equals - text));
        *place_p = equals + 1;
    } else {
        while (length > 1 && text[length - 1] == '/')
            length--;
        slash = memrchr(text, '/', length);
        *name_p = base_strndup(slash != NULL ? slash + 1 : text,
                               length - (slash != NULL ? (size_t)(slash + 1 - text) : 0));
        *place_p = text;
    }
    if (serve_is_name(*name_p))
        return BASE_OK;
    return base_fail(BASE_ERR_USAGE,
                     "'%s' can be no model's name, which has letters, digits, '.', '_' and '-'; "
                     "write --model NAME=%s",
                     *name_p, *place_p);
}

static base_status add_model(struct serve *serve, const char *text)
{
    base_status st = BASE_OK;
    const struct serve_setup *s = serve->setup;
    struct serve_loaded *loaded = NULL;
    struct serve_version *version = NULL;
    const char *place;
    char *name = NULL;

    TRY(split_model(text, &name, &place));
    TRY(serve_loaded_open(place, s->runs_dir, (int)s->batch_size, &loaded));
    version =
        serve_version_new(name, "1.0", place,
                          (struct serve_settings){.batch_size = (int)s->batch_size,
                                                  .max_batch_delay = (int)s->max_batch_delay,
                                                  .response_timeout = (int)s->response_timeout},
                          loaded, (int)s->queue, serve->threads);
    version->at_startup = true;
    TRY(serve_version_scale(version, (int)s->workers, (int)s->workers, true));
    if (!serve_models_add(serve->models, version))
        TRY(base_fail(BASE_ERR_USAGE,
                      "two models are called '%s'; give each a name: --model "
                      "NAME=RUN",
                      name));
    base_info("serving %s: %s", name, version->loaded->model.checkpoint.path);
    version = NULL;
out:
    serve_version_free(version);
    base_free(name);
    return st;
}

/* ---- ports ---- */

static void count_answer(void *context, int status)
{
    struct serve *serve = context;

    atomic_fetch_add(&serve->answers[status < 400 ? 0 : status < 500 ? 1 : 2], 1);
}

static const struct http_route no_routes[] = {{0}};

static base_status open_ports(struct serve *serve)
{
    base_status st = BASE_OK;
    const struct serve_setup *s = serve->setup;
    const int64_t ports[SERVE_PORTS] = {s->port, s->management_port, s->metrics_port};
    const struct http_route *const routes[SERVE_PORTS] = {serve_inference_routes,
                                                          serve_management_routes, no_routes};

    for (int i = 0; i < SERVE_PORTS; i++) {
        struct http_setup setup = http_setup_defaults;

        setup.host = s->host;
        setup.port = (int)ports[i];
        setup.routes = routes[i];
        setup.context = serve;
        setup.error_body = serve_error_body;
        setup.answered = count_answer;
        setup.token = serve->tokens[i];
        setup.certificate = serve->certificate;
        setup.key = serve->key;
        setup.body_limit = (size_t)s->body_limit;
        setup.connections = (unsigned)s->connections;
        setup.connections_per_address = (unsigned)s->connections_per_address;
        TRY(base_prefix(http_server_open(&setup, &serve->servers[i]), "the %s API", port_names[i]));
    }
out:
    return st;
}

static char *address_of(const struct serve *serve, int port)
{
    const char *host = serve->setup->host;

    return base_format("%s://%s%s%s:%d", serve->certificate != NULL ? "https" : "http",
                       strchr(host, ':') != NULL ? "[" : "", host,
                       strchr(host, ':') != NULL ? "]" : "",
                       http_server_port(serve->servers[port]));
}

static base_status tell_ready(const struct serve *serve)
{
    base_status st = BASE_OK;
    json_t *ready = json_object();
    char *text = NULL;

    for (int i = 0; i < SERVE_PORTS; i++) {
        char *address = address_of(serve, i);

        base_info("%s API at %s", port_names[i], address);
        json_object_set_new(ready, port_names[i], json_string(address));
        base_free(address);
    }
    if (serve->setup->ready_file != NULL) {
        text = json_dumps(ready, JSON_COMPACT);
        TRY(base_file_replace(serve->setup->ready_file, text, strlen(text)));
    }
out:
    base_free(text);
    json_decref(ready);
    return st;
}

/* ---- from start to end ---- */

/* Signals reach this thread alone, and it only here: all others inherit that they are blocked. */
static void block_signals(sigset_t *before)
{
    sigset_t stops;

    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &stops, before);
}

static void wait_for_signal(const sigset_t *before)
{
    while (base_stop_signal() == 0)
        ppoll(NULL, 0, NULL, before);
}

static void drain(struct serve *serve)
{
    double until = base_now() + (double)serve->setup->drain_seconds;

    for (int i = 0; i < SERVE_PORTS; i++)
        if (!http_server_drain(serve->servers[i], until - base_now()))
            base_warn("some requests of the %s API had no answer after %lld seconds", port_names[i],
                      (long long)serve->setup->drain_seconds);
}

static void close_all(struct serve *serve)
{
    serve_models_free(serve->models); /* the last answers come from here */
    for (int i = 0; i < SERVE_PORTS; i++) {
        http_server_close(serve->servers[i]);
        base_free(serve->tokens[i]);
    }
    base_free(serve->certificate);
    base_free(serve->key);
}

base_status serve_run(const struct serve_setup *setup, json_t **result_p)
{
    base_status st = BASE_OK;
    struct serve serve = {.setup = setup, .started = base_now()};
    sigset_t before;

    *result_p = NULL;
    base_stop_install("answering the requests under way; Ctrl-C again quits at once");
    block_signals(&before);
    serve.threads = nn_threads_set((int)setup->threads);
    serve.models = serve_models_new();
    if (setup->models.count == 0)
        TRY(base_fail(BASE_ERR_USAGE, "nothing to serve; give --model NAME=RUN, or --store DIR"));
    for (int i = 0; i < setup->models.count; i++)
        TRY(add_model(&serve, setup->models.at[i]));
    TRY(open_ports(&serve));
    TRY(tell_ready(&serve));
    wait_for_signal(&before);
    drain(&serve);
    *result_p = json_pack("{s:i, s:f, s:I}", "schema", 1, "seconds", base_now() - serve.started,
                          "answers", (json_int_t)atomic_load(&serve.answers[0]));
out:
    close_all(&serve);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return st;
}
