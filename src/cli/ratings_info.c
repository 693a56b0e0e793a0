/* SPDX-License-Identifier: MIT */
#include "cli/ratings_info.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/get.h"
#include "recsys/statistics.h"

enum { BAR = 40 }; /* characters of the longest bar */

static void date_text(uint32_t seconds, char text[32])
{
    time_t moment = (time_t)seconds;
    struct tm parts;

    gmtime_r(&moment, &parts);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

/* ---- JSON ---- */

static json_t *values_json(const struct recsys_ratings *r, const struct recsys_statistics *s)
{
    json_t *list = json_array();
    double width = ((double)r->scale.highest - (double)r->scale.lowest) / RECSYS_VALUE_BINS;

    for (int i = 0; i < s->counts; i++) {
        double from =
            r->scale.levels > 0 ? (double)r->scale.level[i] : (double)r->scale.lowest + i * width;

        json_array_append_new(list, json_pack("{s:f, s:f, s:I}", "from", from, "to",
                                              r->scale.levels > 0 ? from : from + width, "count",
                                              (json_int_t)s->count[i]));
    }
    return list;
}

static json_t *degrees_json(const struct recsys_degrees *d)
{
    json_t *list = json_array();

    for (int b = 0; b < d->bins; b++)
        json_array_append_new(list,
                              json_pack("{s:I, s:I, s:I}", "from", (json_int_t)1 << b, "to",
                                        ((json_int_t)2 << b) - 1, "count", (json_int_t)d->bin[b]));
    return json_pack("{s:I, s:I, s:f, s:I, s:o}", "least", (json_int_t)d->least, "median",
                     (json_int_t)d->median, "mean", d->mean, "most", (json_int_t)d->most,
                     "histogram", list);
}

static json_t *times_json(const struct recsys_ratings *r)
{
    char first[32], last[32];

    if (r->by_user.time == NULL)
        return json_null();
    date_text(r->first_time, first);
    date_text(r->last_time, last);
    return json_pack("{s:s, s:s}", "first", first, "last", last);
}

static json_t *info_json(const char *name, const struct recsys_ratings *r,
                         const struct recsys_statistics *s)
{
    json_t *object =
        json_pack("{s:i, s:o, s:s, s:s, s:I, s:I, s:I, s:f, s:f}", "schema", 1, "data",
                  base_json_text(name), "kind", "ratings", "format", r->format, "users",
                  (json_int_t)r->users, "items", (json_int_t)r->items, "ratings",
                  (json_int_t)r->count, "density", s->density, "mean", s->mean);

    json_object_update_new(
        object, json_pack("{s:{s:f, s:f, s:o, s:I}, s:o, s:o, s:o, s:o}", "scale", "lowest",
                          (double)r->scale.lowest, "highest", (double)r->scale.highest, "step",
                          r->scale.step > 0 ? json_real((double)r->scale.step) : json_null(),
                          "levels", (json_int_t)r->scale.levels, "values", values_json(r, s),
                          "per_user", degrees_json(&s->users), "per_item", degrees_json(&s->items),
                          "times", times_json(r)));
    json_object_update_new(
        object,
        json_pack("{s:I, s:I, s:s, s:o, s:b}", "bad_lines", (json_int_t)r->faults.bad_lines,
                  "duplicates", (json_int_t)r->faults.duplicates, "digest", r->digest, "cache",
                  r->cache != NULL ? base_json_text(r->cache) : json_null(), "cached", r->cached));
    return object;
}

/* ---- text ---- */

static void print_bar(const char *label, uint64_t count, uint64_t most)
{
    struct base_str line = {0};
    int length = most > 0 ? (int)ceil((double)count * BAR / (double)most) : 0;

    base_str_column(&line, label, -16);
    base_str_add(&line, " %12llu%s", (unsigned long long)count, length > 0 ? "  " : "");
    for (int i = 0; i < length; i++)
        base_str_append(&line, "#", 1);
    printf("    %s\n", line.text);
    base_str_fini(&line);
}

static uint64_t greatest(const uint64_t *count, int counts)
{
    uint64_t most = 0;

    for (int i = 0; i < counts; i++)
        most = count[i] > most ? count[i] : most;
    return most;
}

static void print_values(const struct recsys_ratings *r, const struct recsys_statistics *s)
{
    enum { SHOWN = 20 };
    double width = ((double)r->scale.highest - (double)r->scale.lowest) / RECSYS_VALUE_BINS;
    uint64_t most = greatest(s->count, s->counts);

    printf("  %-14s %g … %g", "scale", (double)r->scale.lowest, (double)r->scale.highest);
    if (r->scale.step > 0)
        printf(" in steps of %g", (double)r->scale.step);
    printf("; mean %.4f\n", s->mean);
    if (s->counts > SHOWN)
        printf("  %-14s %d\n", "levels", s->counts);
    for (int i = 0; i < s->counts && s->counts <= SHOWN; i++) {
        char label[48];

        if (r->scale.levels > 0)
            snprintf(label, sizeof label, "%g", (double)r->scale.level[i]);
        else
            snprintf(label, sizeof label, "from %.4g", (double)r->scale.lowest + i * width);
        print_bar(label, s->count[i], most);
    }
}

static void print_degrees(const char *what, const struct recsys_degrees *d)
{
    uint64_t most = greatest(d->bin, d->bins);

    printf("  %-14s %llu … %llu, median %llu, mean %.1f\n", what, (unsigned long long)d->least,
           (unsigned long long)d->most, (unsigned long long)d->median, d->mean);
    for (int b = 0; b < d->bins; b++) {
        char label[48];

        if (b == 0)
            snprintf(label, sizeof label, "1");
        else
            snprintf(label, sizeof label, "%llu … %llu", 1ULL << b, (2ULL << b) - 1);
        print_bar(label, d->bin[b], most);
    }
}

static void info_text(const char *name, const struct recsys_ratings *r,
                      const struct recsys_statistics *s)
{
    char first[32], last[32];

    printf("%s: ratings (%s)\n", name, r->format);
    printf("  %-14s %llu of %u items by %u users\n", "ratings", (unsigned long long)r->count,
           r->items, r->users);
    printf("  %-14s %.4f %% of all pairs are rated\n", "density", 100 * s->density);
    print_values(r, s);
    print_degrees("a user rates", &s->users);
    print_degrees("an item has", &s->items);
    if (r->by_user.time != NULL) {
        date_text(r->first_time, first);
        date_text(r->last_time, last);
        printf("  %-14s %s … %s\n", "times", first, last);
    }
    printf("  %-14s %s\n", "digest", r->digest);
    printf("  %-14s %s\n", "cache", r->cache != NULL ? r->cache : "none");
}

base_status cli_ratings_info(const char *name, const char *path,
                             const struct recsys_options *options, bool json)
{
    base_status st = BASE_OK;
    struct recsys_ratings *ratings = NULL;
    struct recsys_statistics *statistics = base_calloc(1, sizeof *statistics);
    json_t *object = NULL;

    TRY(recsys_ratings_open(path, options, &ratings));
    recsys_warn(ratings);
    TRY(recsys_statistics(ratings, statistics));
    if (json) {
        object = info_json(name, ratings, statistics);
        TRY(base_json_print(object));
    } else {
        info_text(name, ratings, statistics);
    }
out:
    json_decref(object);
    base_free(statistics);
    recsys_ratings_close(ratings);
    return st;
}
