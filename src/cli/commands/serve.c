/* SPDX-License-Identifier: MIT
 *
 * paceline serve: trained models behind TorchServe's API.
 */
#include <stddef.h>

#include "base/log.h"
#include "cli/cli.h"
#include "serve/serve.h"

struct args {
    struct serve_setup serve;
    bool json, quiet;
};

static base_status cmd_serve(void *args, const struct cli_positional *positional)
{
    struct args *a = args;
    json_t *result = NULL;
    base_status st = BASE_OK;

    (void)positional;
    if (a->quiet)
        base_log_level(BASE_WARN);
    TRY(serve_run(&a->serve, &result));
    if (a->json)
        TRY(base_json_print(result));
out:
    json_decref(result);
    return st;
}

#define AT(field) offsetof(struct args, serve.field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "model", .argument = "NAME=RUN", .kind = BASE_TEXTS, .offset = AT(models),
     .help = "serve the newest checkpoint of a run, or that checkpoint, under this name", .local = true},
    {.name = "follow", .argument = "NAME=RUN", .kind = BASE_TEXTS, .offset = AT(follow),
     .help = "the same, and its new checkpoints as its training saves them", .local = true},
    {.name = "store", .argument = "DIR", .kind = BASE_TEXT, .offset = AT(store),
     .help = "folder of runs or checkpoints that requests may register models from", .local = true},
    {.name = "state", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(state),
     .help = "remember registrations there [DIR/.paceline-serve.json of --store]", .local = true},
    {.name = "host", .argument = "ADDRESS", .kind = BASE_TEXT, .offset = AT(host),
     .help = "listen here; anything but a loopback address needs tokens", .local = true},
    {.name = "port", .alias = "inference-port", .argument = "N", .kind = BASE_INT, .offset = AT(port), .max = 65535,
     .help = "of predictions; 0: any that is free", .local = true},
    {.name = "management-port", .argument = "N", .kind = BASE_INT, .offset = AT(management_port), .max = 65535,
     .help = "of registering and scaling models", .local = true},
    {.name = "metrics-port", .argument = "N", .kind = BASE_INT, .offset = AT(metrics_port), .max = 65535,
     .help = "of Prometheus", .local = true},
    {.name = "ready-file", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(ready_file),
     .help = "write the addresses there, as JSON, once requests are answered", .local = true},
    {.name = "token-file", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(token_file),
     .help = "the token of predictions, else PACELINE_INFERENCE_TOKEN", .local = true},
    {.name = "management-token-file", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(management_token_file),
     .help = "the token of management and metrics, else PACELINE_MANAGEMENT_TOKEN", .local = true},
    {.name = "certificate", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(certificate),
     .help = "serve HTTPS with this certificate (PEM)", .local = true},
    {.name = "key", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(key),
     .help = "its key (PEM)", .local = true},
    {.name = "workers", .argument = "N", .kind = BASE_INT, .offset = AT(workers), .min = 1, .max = 64,
     .help = "of each model; they share its threads", .local = true},
    {.name = "threads", .argument = "N", .kind = BASE_INT, .offset = AT(threads), .max = 1024,
     .help = "compute threads of each model; 0: one per core this process may use", .local = true},
    {.name = "batch-size", .argument = "N", .kind = BASE_INT, .offset = AT(batch_size), .min = 1, .max = 1024,
     .help = "requests computed together at most", .local = true},
    {.name = "max-batch-delay", .argument = "MS", .kind = BASE_INT, .offset = AT(max_batch_delay), .max = 1e6,
     .help = "milliseconds that a request waits for others to be computed with", .local = true},
    {.name = "queue", .argument = "N", .kind = BASE_INT, .offset = AT(queue), .min = 1, .max = 1e6,
     .help = "requests of a model that wait; more get 503", .local = true},
    {.name = "response-timeout", .argument = "S", .kind = BASE_INT, .offset = AT(response_timeout), .min = 1, .max = 86400,
     .help = "seconds until a request without an answer gets 408", .local = true},
    {.name = "max-body", .argument = "BYTES", .kind = BASE_SIZE, .offset = AT(body_limit), .min = 1024, .max = 1 << 30,
     .help = "of a request; larger ones get 413", .local = true},
    {.name = "max-pixels", .argument = "N", .kind = BASE_INT, .offset = AT(max_pixels), .min = 1, .max = 1 << 24,
     .help = "of an image; larger ones get 400 before they are decoded", .local = true},
    {.name = "body-seconds", .argument = "S", .kind = BASE_REAL, .offset = AT(body_seconds), .min = 0.1, .max = 86400,
     .help = "that a request may take to arrive, at 16 KB a second at least", .local = true},
    {.name = "connections", .argument = "N", .kind = BASE_INT, .offset = AT(connections), .min = 1, .max = 1e5,
     .help = "of one port at a time", .local = true},
    {.name = "connections-per-address", .argument = "N", .kind = BASE_INT, .offset = AT(connections_per_address), .min = 1, .max = 1e5,
     .help = "of them, those of one client", .local = true},
    {.name = "drain-seconds", .argument = "S", .kind = BASE_INT, .offset = AT(drain_seconds), .max = 86400,
     .help = "that requests under way have left after SIGTERM", .local = true},
    {.name = "runs-dir", .argument = "DIR", .kind = BASE_TEXT, .offset = AT(runs_dir),
     .help = "where runs are kept", .local = true},
    {.name = "json", .kind = BASE_FLAG, .offset = offsetof(struct args, json),
     .help = "one JSON object on standard output, at the end", .local = true},
    {.name = "quiet", .kind = BASE_FLAG, .offset = offsetof(struct args, quiet),
     .help = "of messages only warnings and errors", .local = true},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_serve = {
    .name = "serve",
    .help = "answer predictions over HTTP, as TorchServe does",
    .usage = "paceline serve --model NAME=RUN|CHECKPOINT … [options]",
    .examples = "  paceline serve --model vgg=vgg11-cifar10-1\n"
                "  curl http://127.0.0.1:8080/predictions/vgg -T image.png\n"
                "  curl http://127.0.0.1:8081/models\n"
                "  paceline serve --store models          # then: curl -X POST "
                "'http://127.0.0.1:8081/models?url=vgg&initial_workers=1'\n"
                "  paceline serve --follow live=mine      # a training that goes on\n"
                "  paceline token a.token; paceline token b.token\n"
                "  paceline serve --model vgg=mine --host 0.0.0.0 --token-file a.token "
                "--management-token-file b.token\n",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.serve = {.runs_dir = "runs",
                                               .host = "127.0.0.1",
                                               .port = 8080,
                                               .management_port = 8081,
                                               .metrics_port = 8082,
                                               .workers = 1,
                                               .batch_size = 1,
                                               .max_batch_delay = 100,
                                               .queue = 100,
                                               .response_timeout = 120,
                                               .body_limit = 6553500,
                                               .max_pixels = 1 << 24,
                                               .body_seconds = 60,
                                               .connections = 1024,
                                               .connections_per_address = 512,
                                               .drain_seconds = 30}},
    .run = cmd_serve,
};
