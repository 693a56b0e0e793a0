/* SPDX-License-Identifier: MIT
 *
 * Makes the kernel plan. Each distinct convolution shape is timed once: the candidates take turns
 * for a few rounds on the same random data and the best time of each counts, so that a disturbed
 * round does no harm. A candidate whose outputs are too far from the reference's (onednn) is out;
 * one that does not beat the reference clearly is not worth a change of bits. Runs on the thread
 * that will drive the network.
 */
#include "nn/tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/registry.h"
#include "base/rng.h"
#include "base/str.h"
#include "nn/conv.h"
#include "nn/simd/simd.h"
#include "nn/threads.h"

enum { ROUNDS = 5, MAX_CANDIDATES = 16 };
static const double BUDGET = 0.4;     /* seconds for the rounds of one shape, after the first */
static const double MARGIN = 0.97;    /* of the reference's time: what a winner must stay below */
static const double TOLERANCE = 2e-5; /* L2-relative, against the reference */

static const char reference[] = "onednn";

/* ---- one shape: data, candidates, times ---- */

struct bench {
    const struct nn_conv_shape *shape;
    size_t x_floats, y_floats, w_floats;
    float *x, *y, *dy, *dx, *w, *dw, *b, *db;
    float *want_y, *want_dx, *want_dw; /* of the reference */
    void *scratch;
};

struct contender {
    const struct nn_conv *conv;
    void *state;
    double seconds; /* best round */
};

static void fill(float *values, size_t count, uint32_t what)
{
    struct base_rng rng = base_rng_of(1, BASE_STREAM_TEST, what, 0, 0);
    uint32_t words[4] = {0};

    for (size_t i = 0; i < count; i++) {
        if (i % 4 == 0)
            base_rng_block(&rng, (uint32_t)(i / 4), words);
        values[i] = 2 * base_rng_unit(words[i % 4]) - 1;
    }
}

/* Zero in the padded channels of n samples, as every layer leaves them. */
static void clear_padding(struct nn_shape s, int n, float *values)
{
    size_t area = (size_t)s.h * (size_t)s.w, floats = nn_shape_floats(s);

    if (s.planar || s.c % NN_BLOCK == 0)
        return;
    for (int i = 0; i < n; i++) {
        float *block = values + (size_t)(i + 1) * floats - area * NN_BLOCK;

        for (size_t p = 0; p < area; p++)
            for (int c = s.c % NN_BLOCK; c < NN_BLOCK; c++)
                block[p * NN_BLOCK + (size_t)c] = 0;
    }
}

/* Weights (padding zero) through the tensor's own import, so that any layout is right. */
static base_status fill_weights(struct bench *b, const struct nn_node *node)
{
    base_status st = BASE_OK;
    const struct nn_tensor *t = &node->param[0];
    float *canonical = NULL;

    TRY(base_tensor(t->values, sizeof(float), "a trial of kernels", &canonical));
    fill(canonical, t->values, 3);
    nn_tensor_import(t, canonical, b->w);
out:
    base_free(canonical);
    return st;
}

static void bench_fini(struct bench *b)
{
    float *all[] = {b->x, b->y,  b->dy,     b->dx,      b->w,      b->dw,
                    b->b, b->db, b->want_y, b->want_dx, b->want_dw};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        base_free(all[i]);
    base_free(b->scratch);
}

static base_status bench_init(struct bench *b, const struct nn_conv_shape *shape,
                              const struct nn_node *node)
{
    base_status st = BASE_OK;
    size_t n = (size_t)shape->n_max, o = (size_t)nn_pad8(shape->out.c);
    const char *what = "a trial of kernels";

    *b = (struct bench){.shape = shape,
                        .x_floats = n * nn_shape_floats(shape->in),
                        .y_floats = n * nn_shape_floats(shape->out),
                        .w_floats = node->param[0].floats};
    TRY(base_tensor(b->x_floats, sizeof(float), what, &b->x));
    TRY(base_tensor(b->x_floats, sizeof(float), what, &b->dx));
    TRY(base_tensor(b->x_floats, sizeof(float), what, &b->want_dx));
    TRY(base_tensor(b->y_floats, sizeof(float), what, &b->y));
    TRY(base_tensor(b->y_floats, sizeof(float), what, &b->dy));
    TRY(base_tensor(b->y_floats, sizeof(float), what, &b->want_y));
    TRY(base_tensor(b->w_floats, sizeof(float), what, &b->w));
    TRY(base_tensor(b->w_floats, sizeof(float), what, &b->dw));
    TRY(base_tensor(b->w_floats, sizeof(float), what, &b->want_dw));
    TRY(base_tensor(o, sizeof(float), what, &b->b));
    TRY(base_tensor(o, sizeof(float), what, &b->db));
    fill(b->x, b->x_floats, 1);
    fill(b->dy, b->y_floats, 2);
    clear_padding(shape->in, shape->n_max, b->x);
    clear_padding(shape->out, shape->n_max, b->dy);
    TRY(fill_weights(b, node));
out:
    return st;
}

static base_status run_once(const struct bench *b, const struct contender *c, double *seconds_p)
{
    const struct nn_conv_shape *s = b->shape;
    const float *bias = s->bias ? b->b : NULL;
    base_status st = BASE_OK;
    double began = base_now();

    TRY(c->conv->forward(c->state, s->n_max, b->x, b->w, bias, b->y, b->scratch));
    if (s->training)
        TRY(c->conv->backward(c->state, s->n_max, b->x, b->dy, b->w, b->dw, s->bias ? b->db : NULL,
                              s->want_dx ? b->dx : NULL, b->scratch));
    *seconds_p = base_now() - began;
out:
    return st;
}

static double distance(size_t count, const float *is, const float *want)
{
    double difference = 0, norm = 0;

    for (size_t i = 0; i < count; i++) {
        double d = (double)is[i] - want[i];

        difference += d * d;
        norm += (double)want[i] * want[i];
    }
    return sqrt(difference / fmax(norm, 1e-30));
}

static double error_of(const struct bench *b)
{
    double error = distance(b->y_floats, b->y, b->want_y);

    if (b->shape->training)
        error = fmax(error, distance(b->w_floats, b->dw, b->want_dw));
    if (b->shape->training && b->shape->want_dx)
        error = fmax(error, distance(b->x_floats, b->dx, b->want_dx));
    return error;
}

/* First run of a contender: warms up, and decides whether it may take part. */
static base_status admit(struct bench *b, struct contender *c, bool *admitted_p)
{
    base_status st = BASE_OK;
    double error;

    TRY(run_once(b, c, &c->seconds));
    *admitted_p = true;
    if (strcmp(c->conv->name, reference) == 0) {
        memcpy(b->want_y, b->y, b->y_floats * sizeof(float));
        memcpy(b->want_dw, b->dw, b->w_floats * sizeof(float));
        memcpy(b->want_dx, b->dx, b->x_floats * sizeof(float));
        goto out;
    }
    error = error_of(b);
    *admitted_p = error <= TOLERANCE;
    if (!*admitted_p)
        base_warn("kernel %s is off by %.1e on a convolution of %dx%dx%d: not used", c->conv->name,
                  error, b->shape->in.c, b->shape->in.h, b->shape->in.w);
out:
    return st;
}

/* Opens all that serve, the reference first; their scratch is shared. */
static base_status enter(struct bench *b, struct contender *field, int *count_p)
{
    const struct nn_conv *first = base_registry_get(reference, nn_conv_registry, nn_conv_count);
    base_status st = BASE_OK;
    size_t most = 0;

    for (size_t i = 0; i <= nn_conv_count && *count_p < MAX_CANDIDATES; i++) {
        const struct nn_conv *conv = i == 0 ? first : nn_conv_registry[i - 1];
        size_t bytes = 0;

        if ((i > 0 && conv == first) || !conv->serves(b->shape))
            continue;
        TRY(conv->open(b->shape, &bytes, &field[*count_p].state));
        field[(*count_p)++].conv = conv;
        most = bytes > most ? bytes : most;
    }
    TRY(base_tensor(most, 1, "a trial of kernels", &b->scratch));
out:
    return st;
}

static base_status race(struct bench *b, struct contender *field, int *count_p)
{
    base_status st = BASE_OK;
    int count = 0;
    double began;

    for (int i = 0; i < *count_p; i++) {
        bool admitted = false;

        TRY(admit(b, &field[i], &admitted));
        if (admitted) {
            struct contender held = field[count];

            field[count++] = field[i];
            field[i] = held;
        }
    }
    began = base_now();
    for (int round = 0; round < ROUNDS && base_now() - began < BUDGET; round++)
        for (int i = 0; i < count; i++) {
            double seconds;

            TRY(run_once(b, &field[i], &seconds));
            /* The first run paid for page faults: it only counts when there is no other. */
            field[i].seconds = round == 0 ? seconds : fmin(field[i].seconds, seconds);
        }
    *count_p = count;
out:
    return st;
}

static base_status choose(const struct nn_conv_shape *shape, const struct nn_node *node,
                          const char **name_p)
{
    struct contender field[MAX_CANDIDATES] = {0};
    struct bench b;
    int opened = 0, count, best = 0;
    base_status st = bench_init(&b, shape, node);

    if (st == BASE_OK)
        st = enter(&b, field, &opened);
    count = opened;
    if (st == BASE_OK && opened > 1)
        st = race(&b, field, &count);
    for (int i = 1; i < count; i++) {
        if (field[i].seconds < field[best].seconds && field[i].seconds < MARGIN * field[0].seconds)
            best = i;
    }
    if (st == BASE_OK)
        *name_p = field[best].conv->name;
    for (int i = 0; i < opened; i++)
        field[i].conv->close(field[i].state);
    bench_fini(&b);
    return st;
}

/* ---- what is known of this machine ---- */

/* "64x16x16 128x16x16 k3x3 s1x1 p1x1 g1 bias n64 train dx" */
static char *key_of(const struct nn_conv_shape *s)
{
    return base_format("%dx%dx%d%s %dx%dx%d k%dx%d s%dx%d p%dx%d g%d%s n%d%s%s", s->in.c, s->in.h,
                       s->in.w, s->in.planar ? " planar" : "", s->out.c, s->out.h, s->out.w,
                       s->kernel[0], s->kernel[1], s->stride[0], s->stride[1], s->pad[0], s->pad[1],
                       s->groups, s->bias ? " bias" : "", s->n_max, s->training ? " train" : "",
                       s->want_dx ? " dx" : "");
}

/* "AMD EPYC 7B13", from the first processor's entry. */
static void cpu_name(char *name, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];

    snprintf(name, size, "unknown");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');

        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            snprintf(name, size, "%.*s", (int)strcspn(colon + 1, "\n") - 1, colon + 2);
            break;
        }
    }
    if (file != NULL)
        fclose(file);
}

/* Times are of this CPU, level, number of threads and program, and the choice was between these
 * candidates: a new one is tried. */
static char *machine_of(void)
{
    struct base_str machine = {0};
    char name[128];

    cpu_name(name, sizeof name);
    base_str_add(&machine, "%s, %s, %d threads, %s:", name, nn_simd()->name, nn_threads(),
                 PACELINE_VERSION);
    for (size_t i = 0; i < nn_conv_count; i++)
        base_str_add(&machine, " %s", nn_conv_registry[i]->name);
    return base_str_take(&machine);
}

/* The part of the cache about this machine, made if absent; a cache that does not parse is
 * replaced: it is only a memory of times. */
static json_t *open_cache(const char *path, json_t **here_p)
{
    char *machine = machine_of();
    json_t *cache = NULL;

    if (path == NULL || !base_exists(path) || base_json_load(path, 1 << 24, &cache) != BASE_OK ||
        !json_is_object(cache)) {
        json_decref(cache);
        cache = json_object();
    }
    *here_p = json_object_get(cache, machine);
    if (!json_is_object(*here_p)) {
        *here_p = json_object();
        json_object_set_new(cache, machine, *here_p);
    }
    base_free(machine);
    return cache;
}

static base_status save_cache(const char *path, const json_t *cache)
{
    base_status st = BASE_OK;
    char *text = json_dumps(cache, JSON_INDENT(1) | JSON_SORT_KEYS), *folder;
    const char *slash = strrchr(path, '/');

    folder = slash != NULL ? base_strndup(path, (size_t)(slash - path)) : base_strdup(".");
    TRY(base_make_dirs(folder));
    TRY(base_file_replace(path, text, strlen(text)));
out:
    base_free(folder);
    base_free(text);
    return st;
}

/* ---- the plan ---- */

/* A remembered choice counts only while it still serves. */
static const char *remembered(const json_t *here, const char *key,
                              const struct nn_conv_shape *shape)
{
    const char *name = json_string_value(json_object_get(here, key));
    const struct nn_conv *conv =
        name != NULL ? base_registry_get(name, nn_conv_registry, nn_conv_count) : NULL;

    return conv != NULL && conv->serves(shape) ? conv->name : NULL;
}

static base_status find_out(const struct nn_conv_shape *shape, const struct nn_node *node,
                            json_t *here, bool *changed, const char **name_p)
{
    base_status st = BASE_OK;
    char *key = key_of(shape);

    *name_p = remembered(here, key, shape);
    if (*name_p == NULL) {
        base_progress(false, "choosing kernels: %s", node->name);
        TRY(choose(shape, node, name_p));
        json_object_set_new(here, key, json_string(*name_p));
        *changed = true;
    }
out:
    base_free(key);
    return st;
}

/* The first layer of a model wants no gradient of its input. */
static bool wants_dx(const struct nn_graph *graph, const struct nn_setup *setup, int index)
{
    if (!setup->training)
        return false;
    if (setup->first > 0 || setup->input_gradient)
        return true;
    for (int i = 0; i < index; i++)
        if (nn_graph_node(graph, i)->params > 0)
            return true;
    return false;
}

struct plan {
    const struct nn_conv *forced; /* NULL: the fastest */
    json_t *here;                 /* what the cache knows of this machine */
    bool changed;
    int convolutions, served; /* served: by the forced one */
    struct base_str text;
};

static base_status plan_layer(struct plan *p, const struct nn_node *node,
                              struct nn_conv_shape shape)
{
    base_status st = BASE_OK;
    const char *name = reference;

    p->convolutions++;
    if (p->forced == NULL) {
        TRY(find_out(&shape, node, p->here, &p->changed, &name));
    } else if (p->forced->serves(&shape)) {
        name = p->forced->name;
        p->served++;
    }
    base_str_add(&p->text, "%s%s=%s", p->text.length > 0 ? " " : "", node->name, name);
out:
    return st;
}

static base_status find_kernel(const char *name, const struct nn_conv **conv_p)
{
    return base_registry_find("convolution kernel (or auto)", name, nn_conv_registry, nn_conv_count,
                              conv_p);
}

base_status nn_tune_check(const char *wish)
{
    base_status st = BASE_OK;
    const struct nn_conv *conv = NULL;
    char *copy = NULL, *rest = NULL;

    if (wish == NULL || wish[0] == '\0' || strcmp(wish, "auto") == 0)
        return BASE_OK;
    if (strchr(wish, '=') == NULL)
        return find_kernel(wish, &conv);
    copy = base_strdup(wish);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (strchr(word, '=') != NULL)
            TRY(find_kernel(strchr(word, '=') + 1, &conv));
out:
    base_free(copy);
    return st;
}

/* Every layer that a given plan names must be there. */
static base_status check_plan(const struct nn_graph *graph, const char *plan)
{
    base_status st = BASE_OK;

    while (st == BASE_OK && *plan != '\0') {
        size_t word = strcspn(plan, " "), name = strcspn(plan, "= ");
        char *layer = base_strndup(plan, name);
        int index = -1;

        if (word > 0)
            st = base_prefix(nn_graph_find(graph, layer, &index), "kernel plan");
        base_free(layer);
        plan += word;
        plan += strspn(plan, " ");
    }
    return st;
}

base_status nn_tune(const struct nn_graph *graph, const struct nn_setup *setup, const char *wish,
                    const char *cache, char **plan_p)
{
    base_status st = BASE_OK;
    struct plan p = {0};
    json_t *known = open_cache(cache, &p.here);
    int last = setup->last > 0 ? setup->last : nn_graph_layers(graph);

    *plan_p = NULL;
    /* The plan of a model without convolutions is empty. */
    if (wish != NULL && (wish[0] == '\0' || strchr(wish, '=') != NULL)) {
        TRY(nn_tune_check(wish));
        TRY(check_plan(graph, wish));
        *plan_p = base_strdup(wish);
        goto out;
    }
    if (wish != NULL && strcmp(wish, "auto") != 0)
        TRY(find_kernel(wish, &p.forced));
    for (int i = setup->first; i < last; i++) {
        const struct nn_node *node = nn_graph_node(graph, i);
        struct nn_conv_shape shape = {.n_max = setup->n_max, .training = setup->training};

        if (node->layer->convolution == NULL)
            continue;
        shape.want_dx = wants_dx(graph, setup, i);
        node->layer->convolution(node, &shape);
        TRY(plan_layer(&p, node, shape));
    }
    base_progress_clear();
    if (p.forced != NULL && p.convolutions > 0 && p.served == 0)
        TRY(base_fail(BASE_ERR_USAGE, "kernel %s serves no convolution of this model",
                      p.forced->name));
    if (p.changed && cache != NULL && save_cache(cache, known) != BASE_OK)
        base_warn("kernel timings are not remembered: %s", base_message());
    *plan_p = base_str_take(&p.text);
out:
    base_str_fini(&p.text);
    json_decref(known);
    return st;
}

char *nn_tune_cache(void)
{
    char *dir = base_cache_dir();
    char *cache = dir != NULL ? base_format("%s/kernels.json", dir) : NULL;

    base_free(dir);
    return cache;
}

/* ---- reading a plan ---- */

char *nn_tune_kernel(const char *plan, const struct nn_node *node)
{
    size_t length = strlen(node->name);

    if (plan == NULL || plan[0] == '\0')
        return NULL;
    if (strchr(plan, '=') == NULL)
        return base_strdup(plan);
    while (*plan != '\0') {
        size_t word = strcspn(plan, " ");

        if (word > length && strncmp(plan, node->name, length) == 0 && plan[length] == '=')
            return base_strndup(plan + length + 1, word - length - 1);
        plan += word;
        plan += strspn(plan, " ");
    }
    return NULL;
}

double nn_tune_flops(const struct nn_graph *graph, const char *plan)
{
    double flops = 0;

    for (int i = 0; i < nn_graph_layers(graph); i++) {
        const struct nn_node *node = nn_graph_node(graph, i);
        char *kernel = node->layer->convolution != NULL ? nn_tune_kernel(plan, node) : NULL;
        const struct nn_conv *conv =
            kernel != NULL ? base_registry_get(kernel, nn_conv_registry, nn_conv_count) : NULL;

        flops += node->flops * (conv != NULL ? conv->share : 1);
        base_free(kernel);
    }
    return flops;
}
