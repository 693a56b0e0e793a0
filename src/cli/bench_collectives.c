/* SPDX-License-Identifier: MIT */
#include "cli/bench_collectives.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/cluster.h"
#include "coll/coll.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void print_result(const json_t *r)
{
    const json_t *seconds = json_object_get(r, "seconds");
    char share[16] = "";

    if (json_is_number(json_object_get(r, "share")))
        snprintf(share, sizeof share, "%.0f %%", 100 * number_of(r, "share"));
    printf("%-14s %-17s%s %-7s %10.0f %12.2f %12.2f %8.2f %7s%s\n", text_of(r, "collective"),
           text_of(r, "algorithm"), json_is_true(json_object_get(r, "forced")) ? "*" : " ",
           text_of(r, "buffers"), number_of(r, "bytes"), 1e6 * number_of(seconds, "median"),
           1e6 * number_of(seconds, "min"), number_of(r, "bus_bandwidth") / 1e9, share,
           json_is_true(json_object_get(r, "engine")) ? "  engine" : "");
}

static void print(const json_t *result)
{
    const json_t *limits = json_object_get(result, "limits"), *one;
    size_t index;

    printf("%.0f workers; memory: read %.1f GB/s, write %.1f GB/s, all together; link %.2f GB/s\n",
           number_of(result, "workers"), number_of(limits, "memory_read") / 1e9,
           number_of(limits, "memory_write") / 1e9, number_of(limits, "link") / 1e9);
    printf("%-14s %-18s %-7s %10s %12s %12s %8s %7s\n", "collective", "algorithm", "buffers",
           "bytes", "median us", "min us", "bus GB/s", "limit");
    json_array_foreach(json_object_get(result, "results"), index, one) print_result(one);
}

/* Refuses wrong words here, once, and not in every worker. A word is a kind, or what coll_force
 * takes. */
static base_status check(const struct cli_bench_collectives *b)
{
    base_status st = BASE_OK;
    char *copy = base_strdup(b->collective != NULL ? b->collective : "auto"), *rest = NULL;

    if (b->bytes % (int64_t)sizeof(float) != 0)
        TRY(base_fail(BASE_ERR_USAGE, "--bytes %lld are no whole floats of 4",
                      (long long)b->bytes));
    for (char *word = strtok_r(copy, " ,", &rest); word; word = strtok_r(NULL, " ,", &rest)) {
        int kind = 0;

        while (kind < COLL_KINDS && strcmp(coll_kind_names[kind], word) != 0)
            kind++;
        if (kind == COLL_KINDS)
            TRY(base_prefix(coll_force_check(word), "--collective"));
    }
out:
    base_free(copy);
    return st;
}

base_status cli_bench_collectives(const struct cli_bench_collectives *b)
{
    base_status st = BASE_OK;
    struct cluster_setup setup = {.program = "collectives"};
    json_t *result = NULL;

    TRY(check(b));
    TRY(cluster_launch_find(&b->cluster, &setup.launch));
    setup.job =
        json_pack("{s:s, s:I, s:f, s:b, s:b}", "collective",
                  b->collective != NULL ? b->collective : "auto", "bytes", (json_int_t)b->bytes,
                  "seconds", b->seconds, "every", (int)b->every, "engine", (int)b->engine);
    TRY(cli_cluster_run(&setup, &result));
    if (result != NULL && b->json)
        TRY(base_json_print(result));
    else if (result != NULL)
        print(result);
out:
    json_decref(setup.job);
    json_decref(result);
    return st;
}
