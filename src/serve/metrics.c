/* SPDX-License-Identifier: MIT
 *
 * The metrics port. TorchServe's names, with the meaning that they have there, and some of our own
 * (paceline_…). What is told about the machine is read when it is asked for: no thread measures.
 */
#include "serve/metrics.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "serve/serve_private.h"

void serve_count_answer(struct serve_counters *c, double queued, double computed)
{
    double us = (queued + computed) * 1e6;
    int bucket = 0;

    while (bucket < SERVE_BUCKETS - 1 && us > (double)(10ull << bucket))
        bucket++;
    atomic_fetch_add(&c->requests, 1);
    atomic_fetch_add(&c->queue_us, (unsigned long long)(queued * 1e6));
    atomic_fetch_add(&c->inference_us, (unsigned long long)(computed * 1e6));
    atomic_fetch_add(&c->latency[bucket], 1);
}

/* ---- metrics of models ---- */

static unsigned long long of_requests(struct serve_version *v)
{
    return atomic_load(&v->counters.requests);
}

static unsigned long long of_inference(struct serve_version *v)
{
    return atomic_load(&v->counters.inference_us);
}

static unsigned long long of_queueing(struct serve_version *v)
{
    return atomic_load(&v->counters.queue_us);
}

static unsigned long long of_refused(struct serve_version *v)
{
    return atomic_load(&v->counters.refused);
}

static unsigned long long of_batches(struct serve_version *v)
{
    return atomic_load(&v->counters.batches);
}

static unsigned long long of_samples(struct serve_version *v)
{
    return atomic_load(&v->counters.samples);
}

static unsigned long long of_queue(struct serve_version *v)
{
    return (unsigned long long)serve_version_status(v).queued;
}

static unsigned long long of_workers(struct serve_version *v)
{
    return (unsigned long long)serve_version_status(v).able;
}

static unsigned long long of_step(struct serve_version *v)
{
    struct serve_loaded *loaded = serve_version_loaded(v);
    unsigned long long step = loaded != NULL ? loaded->model.checkpoint.step : 0;

    serve_loaded_unref(loaded);
    return step;
}

static const struct series {
    const char *name, *type, *help;
    unsigned long long (*value)(struct serve_version *version);
} series[] = {
    {"ts_inference_requests_total", "counter", "Predictions that were computed", of_requests},
    {"ts_inference_latency_microseconds", "counter", "Microseconds of computing, summed",
     of_inference},
    {"ts_queue_latency_microseconds", "counter", "Microseconds of waiting in the queue, summed",
     of_queueing},
    {"paceline_refused_total", "counter", "Requests that got 503", of_refused},
    {"paceline_batches_total", "counter", "Batches that were computed", of_batches},
    {"paceline_samples_total", "counter", "Samples that were computed", of_samples},
    {"paceline_queue_length", "gauge", "Requests that wait", of_queue},
    {"paceline_workers", "gauge", "Workers that are ready", of_workers},
    {"paceline_checkpoint_step", "gauge", "Step of the weights in use", of_step},
};

static void add_labels(struct base_str *text, const struct serve_version *v)
{
    base_str_add(text, "{model_name=\"%s\",model_version=\"%s\"", v->name, v->version);
}

static void add_series(struct base_str *text, const struct series *s, struct serve_version **all,
                       size_t count)
{
    base_str_add(text, "# HELP %s %s.\n# TYPE %s %s\n", s->name, s->help, s->name, s->type);
    for (size_t i = 0; i < count; i++) {
        base_str_add(text, "%s", s->name);
        add_labels(text, all[i]);
        base_str_add(text, "} %llu\n", s->value(all[i]));
    }
}

static const char latency_name[] = "paceline_request_seconds";

static void add_latency(struct base_str *text, struct serve_version **all, size_t count)
{
    base_str_add(text, "# HELP %s From a request's last byte to its answer.\n# TYPE %s histogram\n",
                 latency_name, latency_name);
    for (size_t i = 0; i < count; i++) {
        struct serve_counters *c = &all[i]->counters;
        unsigned long long below = 0;

        for (int b = 0; b < SERVE_BUCKETS; b++) {
            below += atomic_load(&c->latency[b]);
            base_str_add(text, "%s_bucket", latency_name);
            add_labels(text, all[i]);
            if (b < SERVE_BUCKETS - 1)
                base_str_add(text, ",le=\"%g\"} %llu\n", (double)(10ull << b) / 1e6, below);
            else
                base_str_add(text, ",le=\"+Inf\"} %llu\n", below);
        }
        base_str_add(text, "%s_sum", latency_name);
        add_labels(text, all[i]);
        base_str_add(text, "} %.6f\n%s_count",
                     (double)(atomic_load(&c->queue_us) + atomic_load(&c->inference_us)) / 1e6,
                     latency_name);
        add_labels(text, all[i]);
        base_str_add(text, "} %llu\n", below);
    }
}

/* ---- metrics of the machine ---- */

/* The busy per cent of all cores' time since the last look; 0 at the first. */
static double cpu_use(struct serve *serve)
{
    FILE *file = fopen("/proc/stat", "re");
    unsigned long long user = 0, nice = 0, system = 0, idle = 0, wait = 0, busy, total;
    double use = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "cpu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &wait) == 5) {
        busy = user + nice + system;
        total = busy + idle + wait;
        if (serve->cpu_total > 0 && total > serve->cpu_total)
            use = 100.0 * (double)(busy - serve->cpu_before) / (double)(total - serve->cpu_total);
        serve->cpu_before = busy;
        serve->cpu_total = total;
    }
    fclose(file);
    return use;
}

/* Both in megabytes. */
static void read_memory(double *total, double *available)
{
    FILE *file = fopen("/proc/meminfo", "re");
    char line[256];
    double kilobytes;

    *total = *available = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "MemTotal: %lf", &kilobytes) == 1)
            *total = kilobytes / 1024;
        if (sscanf(line, "MemAvailable: %lf", &kilobytes) == 1)
            *available = kilobytes / 1024;
    }
    if (file != NULL)
        fclose(file);
}

/* A request that names no metric wants all. */
static bool wants(const struct http_request *request, const char *name)
{
    const char *only;
    int count = 0;

    while ((only = http_parameter_at(request, "name[]", count)) != NULL) {
        if (strcmp(only, name) == 0)
            return true;
        count++;
    }
    return count == 0;
}

static void add_host(struct base_str *text, const struct http_request *request, const char *name,
                     const char *type, double value)
{
    char host[256] = "";

    if (!wants(request, name))
        return;
    gethostname(host, sizeof host - 1);
    base_str_add(
        text, "# HELP %s Of this host.\n# TYPE %s %s\n%s{Level=\"Host\",Hostname=\"%s\"} %.10g\n",
        name, name, type, name, host, value);
}

static void tell(void *context, struct http_request *request)
{
    struct serve *serve = context;
    struct base_str text = {0};
    double total, available;
    size_t count;
    struct serve_version **all = serve_models_list(serve->models, false, &count);

    read_memory(&total, &available);
    add_host(&text, request, "Requests2XX", "counter", (double)atomic_load(&serve->answers[0]));
    add_host(&text, request, "Requests4XX", "counter", (double)atomic_load(&serve->answers[1]));
    add_host(&text, request, "Requests5XX", "counter", (double)atomic_load(&serve->answers[2]));
    add_host(&text, request, "CPUUtilization", "gauge", cpu_use(serve));
    add_host(&text, request, "MemoryUsed", "gauge", total - available);
    add_host(&text, request, "MemoryAvailable", "gauge", available);
    add_host(&text, request, "MemoryUtilization", "gauge",
             total > 0 ? 100 * (total - available) / total : 0);
    for (size_t i = 0; i < sizeof series / sizeof *series; i++)
        if (wants(request, series[i].name))
            add_series(&text, &series[i], all, count);
    if (wants(request, latency_name))
        add_latency(&text, all, count);
    for (size_t i = 0; i < count; i++)
        serve_models_release(serve->models, all[i]);
    base_free(all);
    base_str_append(&text, "", 0);
    size_t length = text.length;

    http_answer(request, 200, "text/plain; version=0.0.4; charset=utf-8", base_str_take(&text),
                length);
}

const struct http_route serve_metrics_routes[] = {
    {"GET", "/metrics", tell, .help = "all metrics, in Prometheus' form", .query = "name[]"},
    {0},
};
