/* SPDX-License-Identifier: MIT
 *
 * Start and end of the server: models, ports, the words at the start, the signal, the drain.
 */
#include "serve/serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "http/token.h"
#include "nn/threads.h"
#include "serve/answer.h"
#include "serve/follow.h"
#include "serve/live.h"
#include "serve/register.h"

enum { MAX_PEM = 1 << 20 };

static const char *const port_names[SERVE_PORTS] = {"inference", "management", "metrics"};

/* ---- models of the command line ---- */

/* `text` is "NAME=PLACE", or a place, from which the name is then taken. */
static base_status add_model(struct serve *serve, const char *text, bool follows)
{
    base_status st = BASE_OK;
    const char *equals = strchr(text, '='), *place = equals != NULL ? equals + 1 : text;
    char *name =
        equals != NULL ? base_strndup(text, (size_t)(equals - text)) : serve_model_name(text);
    struct serve_order order = {.name = name,
                                .version = serve_first_version,
                                .url = place,
                                .at_startup = true,
                                .follows = follows,
                                .wait = true,
                                .settings = serve_default_settings(serve->setup)};
    struct serve_verdict verdict;

    serve_state_workers(serve, name, order.version, &order.settings);
    TRY(serve_register(serve, &order, &verdict));
    if (follows)
        TRY(serve_follower_add(serve->follower, name, place));
out:
    base_free(name);
    return st;
}

static base_status add_models(struct serve *serve)
{
    base_status st = BASE_OK;
    const struct serve_setup *s = serve->setup;

    if (s->models.count == 0 && s->follow.count == 0 && s->store == NULL)
        TRY(base_fail(BASE_ERR_USAGE, "nothing to serve; give --model NAME=RUN, --follow RUN or "
                                      "--store DIR"));
    if (s->store != NULL)
        TRY(serve_store_open(s->store, &serve->store));
    TRY(serve_state_open(serve));
    if (s->follow.count > 0)
        TRY(serve_follower_new(serve, &serve->follower));
    for (int i = 0; i < s->models.count; i++)
        TRY(add_model(serve, s->models.at[i], false));
    for (int i = 0; i < s->follow.count; i++)
        TRY(add_model(serve, s->follow.at[i], true));
    TRY(serve_state_restore(serve));
    if (serve->follower != NULL)
        TRY(serve_follower_start(serve->follower));
out:
    return st;
}

/* ---- tokens and certificate ---- */

/* The metrics port takes the management's token. */
static base_status read_secrets(struct serve *serve)
{
    base_status st = BASE_OK;
    const struct serve_setup *s = serve->setup;
    char **tokens = serve->tokens;
    size_t count;

    TRY(http_token_find(s->token_file, "PACELINE_INFERENCE_TOKEN", &tokens[SERVE_INFERENCE]));
    TRY(http_token_find(s->management_token_file, "PACELINE_MANAGEMENT_TOKEN",
                        &tokens[SERVE_MANAGEMENT]));
    if (tokens[SERVE_MANAGEMENT] != NULL)
        tokens[SERVE_METRICS] = base_strdup(tokens[SERVE_MANAGEMENT]);
    if (!http_is_loopback(s->host) &&
        (tokens[SERVE_INFERENCE] == NULL || tokens[SERVE_MANAGEMENT] == NULL))
        TRY(base_fail(BASE_ERR_USAGE,
                      "others can reach %s, so clients need tokens: --token-file FILE and "
                      "--management-token-file FILE (`paceline token FILE` makes one), or "
                      "PACELINE_INFERENCE_TOKEN and PACELINE_MANAGEMENT_TOKEN",
                      s->host));
    if (tokens[SERVE_INFERENCE] != NULL && tokens[SERVE_MANAGEMENT] != NULL &&
        strcmp(tokens[SERVE_INFERENCE], tokens[SERVE_MANAGEMENT]) == 0)
        TRY(base_fail(BASE_ERR_USAGE, "the token of the inference API must not be that of the "
                                      "management API"));
    if ((s->certificate == NULL) != (s->key == NULL))
        TRY(base_fail(BASE_ERR_USAGE, "HTTPS needs both --certificate and --key"));
    if (s->certificate != NULL) {
        TRY(base_file_read(s->certificate, MAX_PEM, &serve->certificate, &count));
        TRY(base_file_read(s->key, MAX_PEM, &serve->key, &count));
    }
out:
    return st;
}

/* ---- ports ---- */

static void count_answer(void *context, int status)
{
    struct serve *serve = context;

    atomic_fetch_add(&serve->answers[status < 400 ? 0 : status < 500 ? 1 : 2], 1);
}

static base_status open_ports(struct serve *serve)
{
    base_status st = BASE_OK;
    const struct serve_setup *s = serve->setup;
    const int64_t ports[SERVE_PORTS] = {s->port, s->management_port, s->metrics_port};
    const struct http_route *const routes[SERVE_PORTS] = {
        serve_inference_routes, serve_management_routes, serve_metrics_routes};

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
        setup.body_seconds = s->body_seconds;
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

/* Prints a command that a person can paste; it names the token's file and not the token. */
static void tell_curl(const struct serve *serve, int port, const char *rest)
{
    const struct serve_setup *s = serve->setup;
    const char *file = port == SERVE_INFERENCE ? s->token_file : s->management_token_file;
    const char *variable =
        port == SERVE_INFERENCE ? "PACELINE_INFERENCE_TOKEN" : "PACELINE_MANAGEMENT_TOKEN";
    char *address = address_of(serve, port), *token = NULL;

    if (serve->tokens[port] != NULL && file != NULL)
        token = base_format(" -H \"Authorization: Bearer $(cat %s)\"", file);
    else if (serve->tokens[port] != NULL)
        token = base_format(" -H \"Authorization: Bearer $%s\"", variable);
    base_info("  curl%s%s%s %s%s", s->certificate != NULL ? " --cacert " : "",
              s->certificate != NULL ? s->certificate : "", token != NULL ? token : "", address,
              rest);
    base_free(token);
    base_free(address);
}

/* What to send to a model, for curl. */
static const char *body_for(struct serve_version *version)
{
    struct serve_loaded *loaded = serve_version_loaded(version);
    const bool ratings = loaded != NULL && loaded->ratings != NULL;
    const bool rows = loaded != NULL && loaded->model.about.table != NULL;

    serve_loaded_unref(loaded);
    return ratings ? "-d '{\"user\": 1, \"n\": 10}'" : rows ? "-T rows.json" : "-T image.png";
}

static void tell_curls(const struct serve *serve)
{
    size_t count;
    struct serve_version **all = serve_models_list(serve->models, true, &count);
    char *predict = base_format("/predictions/%s %s", count > 0 ? all[0]->name : "NAME",
                                count > 0 ? body_for(all[0]) : "-T image.png");

    for (size_t i = 0; i < count; i++)
        serve_models_release(serve->models, all[i]);
    base_free(all);
    tell_curl(serve, SERVE_INFERENCE, predict);
    tell_curl(serve, SERVE_MANAGEMENT, "/models");
    tell_curl(serve, SERVE_METRICS, "/metrics");
    base_free(predict);
}

static base_status tell_ready(const struct serve *serve)
{
    base_status st = BASE_OK;
    json_t *ready = json_object();
    char *text = NULL;

    for (int i = 0; i < SERVE_PORTS; i++) {
        char *address = address_of(serve, i);

        json_object_set_new(ready, port_names[i], json_string(address));
        base_free(address);
    }
    if (serve->setup->ready_file != NULL) {
        text = json_dumps(ready, JSON_COMPACT);
        TRY(base_file_replace(serve->setup->ready_file, text, strlen(text)));
    }
    if (http_is_loopback(serve->setup->host))
        base_info("ready; open %s or try", json_string_value(json_object_get(ready, "inference")));
    else
        base_info("ready; try");
    tell_curls(serve);
out:
    base_free(text);
    json_decref(ready);
    return st;
}

/* ---- from start to end ---- */

/* The thread that ends the process at a signal while models load: no request is under way yet, so
 * there is nothing to wait for. */
static void *quit_at_signal(void *argument)
{
    sigset_t stops = base_stop_signals();
    struct sigaction action;
    int number;

    (void)argument;
    for (;;)
        if (sigwait(&stops, &number) == 0 && sigaction(number, NULL, &action) == 0 &&
            action.sa_handler != SIG_IGN) /* under nohup SIGHUP is ignored */
            _exit(128 + number);
}

static base_status add_models_or_quit(struct serve *serve)
{
    base_status st;
    pthread_t quitter;

    if ((errno = pthread_create(&quitter, NULL, quit_at_signal, NULL)) != 0)
        return base_fail(BASE_ERR_IO, "cannot start a thread: %m");
    st = add_models(serve);
    pthread_cancel(quitter);
    pthread_join(quitter, NULL);
    return st;
}

/* Every connection needs a descriptor; the usual limit of 1024 is meant for programs that use
 * select. */
static void raise_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void drain(struct serve *serve)
{
    double until = base_now() + (double)serve->setup->drain_seconds;
    size_t count;
    struct serve_version **all = serve_models_list(serve->models, false, &count);

    for (size_t i = 0; i < count; i++) {
        serve_version_hurry(all[i]);
        serve_models_release(serve->models, all[i]);
    }
    base_free(all);
    for (int i = 0; i < SERVE_PORTS; i++)
        if (!http_server_drain(serve->servers[i], until - base_now()))
            base_warn("some requests of the %s API had no answer after %lld seconds", port_names[i],
                      (long long)serve->setup->drain_seconds);
}

static void close_all(struct serve *serve)
{
    for (int i = 0; i < SERVE_PORTS; i++)
        if (serve->servers[i] != NULL)
            http_server_drain(serve->servers[i], 0); /* no handler runs any more */
    http_live_free(serve->live);
    serve_follower_free(serve->follower);
    serve_models_free(serve->models); /* its workers give the last answers */
    for (int i = 0; i < SERVE_PORTS; i++) {
        http_server_close(serve->servers[i]);
        base_free(serve->tokens[i]);
    }
    base_free(serve->certificate);
    base_free(serve->key);
    json_decref(serve->state);
    base_free(serve->state_path);
    serve_store_close(serve->store);
}

static json_t *result_of(struct serve *serve)
{
    unsigned long long requests = 0, samples = 0;
    size_t count;
    struct serve_version **all = serve_models_list(serve->models, false, &count);

    for (size_t i = 0; i < count; i++) {
        requests += atomic_load(&all[i]->counters.requests);
        samples += atomic_load(&all[i]->counters.samples);
        serve_models_release(serve->models, all[i]);
    }
    base_free(all);
    return json_pack("{s:i, s:f, s:i, s:I, s:I, s:{s:I, s:I, s:I}}", "schema", 1, "seconds",
                     base_now() - serve->started, "models", (int)count, "predictions",
                     (json_int_t)requests, "samples", (json_int_t)samples, "answers", "2xx",
                     (json_int_t)atomic_load(&serve->answers[0]), "4xx",
                     (json_int_t)atomic_load(&serve->answers[1]), "5xx",
                     (json_int_t)atomic_load(&serve->answers[2]));
}

base_status serve_run(const struct serve_setup *setup, json_t **result_p)
{
    base_status st = BASE_OK;
    struct serve serve = {.setup = setup, .started = base_now()};
    sigset_t before;

    *result_p = NULL;
    base_stop_install("answering the requests under way; Ctrl-C again quits at once");
    base_stop_block(&before);
    raise_descriptors();
    serve.threads = nn_threads_set((int)setup->threads);
    serve.models = serve_models_new();
    TRY(read_secrets(&serve));
    TRY(add_models_or_quit(&serve));
    TRY(http_live_new(1, serve_live_tell, &serve, &serve.live));
    TRY(open_ports(&serve));
    TRY(tell_ready(&serve));
    while (base_stop_signal() == 0)
        ppoll(NULL, 0, NULL, &before);
    pthread_sigmask(SIG_SETMASK, &before, NULL); /* a second signal ends the process at once */
    drain(&serve);
    *result_p = result_of(&serve);
out:
    close_all(&serve);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return st;
}
