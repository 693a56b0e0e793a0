/* SPDX-License-Identifier: MIT
 *
 * What the workers of `paceline bench collectives` do: measure operations of one kind after the
 * other, size by size, with the algorithm that is chosen or with every one that serves.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "cluster/worker.h"
#include "coll/algorithm.h"
#include "coll/measure.h"

enum { MOST_CASES = 32, MOST_BYTES = 256 << 20 };
static const double PATIENCE = 60;

struct bench {
    struct cluster_worker *worker;
    const char *collective; /* kinds and algorithms, as words */
    int64_t bytes;          /* 0: all sizes */
    double seconds;         /* how long each case is measured */
    int every;              /* measures every algorithm, not only the chosen ones */
    bool engine;            /* measures each case through the engine, too */
    bool kinds[COLL_KINDS];
    struct coll *coll;
    struct coll_measure *measure;
    struct coll_limits limits;
    int workers;
    bool stops; /* a person asked to stop */
    json_t *results;
};

static base_status collectives_read_job(struct bench *b, const json_t *job)
{
    base_status st = BASE_OK;

    TRY(base_json_string(job, "collective", &b->collective));
    TRY(base_json_integer(job, "bytes", &b->bytes));
    TRY(base_json_real(job, "seconds", &b->seconds));
    b->every = json_is_true(json_object_get(job, "every"));
    b->engine = json_is_true(json_object_get(job, "engine"));
    if (b->bytes < 0 || b->bytes > (int64_t)1 << 40 || !(b->seconds > 0))
        TRY(base_fail(BASE_ERR_DATA, "a job with %lld bytes and %g seconds", (long long)b->bytes,
                      b->seconds));
out:
    return st;
}

/* A word is a kind ("all-reduce"), an algorithm ("ring": of every kind that has it), or both
 * ("all-reduce=ring"). The words that name algorithms are put into `forced`. */
static void collectives_read_word(struct bench *b, const char *word, char *forced, size_t room)
{
    size_t length = strcspn(word, "="), used = strlen(forced);
    bool is_kind = false;

    for (int kind = 0; kind < COLL_KINDS; kind++)
        if (strlen(coll_kind_names[kind]) == length &&
            strncmp(coll_kind_names[kind], word, length) == 0)
            is_kind = b->kinds[kind] = true;
    if (is_kind && word[length] == '\0')
        return;
    for (size_t i = 0; !is_kind && i < coll_algorithm_count; i++)
        if (strcmp(coll_algorithm_registry[i]->name, word) == 0)
            b->kinds[coll_algorithm_registry[i]->kind] = true;
    snprintf(forced + used, room - used, "%s ", word);
}

static base_status collectives_read_words(struct bench *b, char *forced, size_t room)
{
    char *copy = base_strdup(b->collective), *rest = NULL;
    bool any = false;

    forced[0] = '\0';
    for (char *word = strtok_r(copy, " ,", &rest); word; word = strtok_r(NULL, " ,", &rest))
        if (strcmp(word, "auto") != 0)
            collectives_read_word(b, word, forced, room);
    base_free(copy);
    for (int kind = 0; kind < COLL_KINDS; kind++)
        any |= b->kinds[kind];
    for (int kind = 0; kind < COLL_KINDS; kind++)
        b->kinds[kind] |= !any;
    return coll_force(b->coll, forced);
}

static bool collectives_can_share(enum coll_kind kind)
{
    return kind == COLL_ALL_REDUCE || kind == COLL_REDUCE_SCATTER || kind == COLL_ALL_GATHER;
}

/* Lists what to measure for one kind, one size and one sort of buffers: `forced`, and with `every`
 * also each algorithm that serves. */
static int collectives_cases_of(struct bench *b, enum coll_kind kind, size_t bytes, bool shared,
                                const char *forced, char names[][64], struct coll_case *cases)
{
    int count = 0;

    cases[count++] = (struct coll_case){kind, bytes, shared, forced, false};
    if (b->engine)
        cases[count++] = (struct coll_case){kind, bytes, shared, forced, true};
    for (size_t i = 0; b->every && i < coll_algorithm_count && count < MOST_CASES; i++) {
        const struct coll_algorithm *a = coll_algorithm_registry[i];

        if (a->kind != kind)
            continue;
        snprintf(names[count], sizeof names[count], "%s=%s", coll_kind_names[kind], a->name);
        if (coll_force(b->coll, names[count]) != BASE_OK)
            continue; /* the algorithm does not serve this group */
        cases[count] = (struct coll_case){kind, bytes, shared, names[count], false};
        count++;
    }
    return count;
}

static json_t *collectives_result_of(struct bench *b, const struct coll_case *one,
                                     const struct coll_times *times, bool forced)
{
    double limit = coll_limit(b->measure, one, &b->limits);

    return json_pack("{s:s, s:s, s:b, s:b, s:i, s:s, s:I, s:{s:f, s:f}, s:f, s:o}", "collective",
                     coll_kind_names[one->kind], "algorithm",
                     coll_measure_algorithm(b->measure, one), "forced", forced, "engine",
                     (int)one->engine, "workers", b->workers, "buffers",
                     one->shared ? "shared" : "private", "bytes", (json_int_t)one->bytes, "seconds",
                     "median", times->median, "min", times->min, "bus_bandwidth",
                     coll_bus_bandwidth(one, b->workers, times->median), "share",
                     limit > 0 ? json_real(limit / times->median) : json_null());
}

static base_status collectives_measure(struct bench *b, enum coll_kind kind, size_t bytes,
                                       bool shared, const char *forced)
{
    base_status st = BASE_OK;
    char names[MOST_CASES][64];
    struct coll_case cases[MOST_CASES];
    struct coll_times times[MOST_CASES];
    int count;

    /* Rank 0 decides for all, so that no rank waits for one that has stopped. */
    b->stops = cluster_worker_stopping(b->worker);
    TRY(coll_broadcast(b->coll, 0, &b->stops, sizeof b->stops));
    if (b->stops)
        goto out;
    count = collectives_cases_of(b, kind, bytes, shared, forced, names, cases);
    TRY(coll_measure_all(b->measure, cases, count, b->seconds * count, times));
    for (int i = 0; i < count; i++)
        json_array_append_new(b->results, collectives_result_of(b, &cases[i], &times[i],
                                                                i > (int)b->engine || *forced));
out:
    return st;
}

static base_status collectives_measure_sizes(struct bench *b, const char *forced)
{
    base_status st = BASE_OK;

    for (int kind = 0; kind < COLL_KINDS; kind++) {
        size_t bytes = b->bytes > 0 ? (size_t)b->bytes : sizeof(float);

        if (!b->kinds[kind])
            continue;
        if (kind == COLL_BARRIER) {
            TRY(collectives_measure(b, COLL_BARRIER, 0, false, forced));
            continue;
        }
        for (; bytes <= MOST_BYTES || b->bytes > 0; bytes *= 4) {
            for (int shared = 0; shared <= (int)collectives_can_share((enum coll_kind)kind);
                 shared++)
                TRY(collectives_measure(b, (enum coll_kind)kind, bytes, shared, forced));
            if (b->bytes > 0)
                break;
        }
    }
out:
    return st;
}

static base_status collectives_in_group(struct bench *b, struct comm_group *group,
                                        json_t **result_p)
{
    base_status st = BASE_OK;
    char forced[512];

    b->workers = comm_group_size(group);
    TRY(coll_open(group, NULL, &b->coll));
    TRY(collectives_read_words(b, forced, sizeof forced));
    TRY(coll_measure_open(b->coll, b->bytes > 0 ? (size_t)b->bytes : MOST_BYTES, &b->measure));
    TRY(coll_measure_limits(b->measure, &b->limits));
    TRY(collectives_measure_sizes(b, forced));
    *result_p = json_pack("{s:i, s:i, s:{s:f, s:f, s:f}, s:O, s:b}", "schema", 1, "workers",
                          b->workers, "limits", "memory_read", b->limits.memory_read,
                          "memory_write", b->limits.memory_write, "link", b->limits.link, "results",
                          b->results, "interrupted", (int)b->stops);
out:
    coll_measure_close(b->measure);
    coll_close(b->coll);
    return st;
}

static base_status collectives_run(struct cluster_worker *worker, const json_t *job,
                                   json_t **result_p)
{
    base_status st = BASE_OK;
    struct bench b = {.worker = worker, .results = json_array()};
    struct comm_group *group = NULL;
    struct comm_view view = {0};

    TRY(collectives_read_job(&b, job));
    TRY(cluster_worker_group(worker, PATIENCE, &view, &group));
    TRY(collectives_in_group(&b, group, result_p));
out:
    cluster_worker_leave(worker, group);
    json_decref(b.results);
    return st;
}

const struct cluster_program cluster_program_collectives = {
    .name = "collectives",
    .help = "times of collective operations",
    .run = collectives_run,
};
