/* SPDX-License-Identifier: MIT */
#include "train/shares_plan.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/event_reader.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/run.h"

enum { MOST_ENTRIES = 65536, MOST_SAMPLES = 1 << 30 };

/* A number from `least` to `most` at *text_p, which moves on. */
static bool read_number(const char **text_p, int64_t least, int64_t most, int64_t *number_p)
{
    char *end;

    if (**text_p < '0' || **text_p > '9')
        return false;
    errno = 0;
    *number_p = strtoll(*text_p, &end, 10);
    *text_p = end;
    return errno == 0 && *number_p >= least && *number_p <= most;
}

/* "21=10/20/34" at *text_p. */
static bool read_entry(const char **text_p, struct train_shares_entry *e)
{
    int64_t samples, sum = 0;

    *e = (struct train_shares_entry){0};
    if (!read_number(text_p, 1, INT64_MAX, &e->step) || **text_p != '=')
        return false;
    do {
        ++*text_p;
        if (e->size == COMM_MAX_WORKERS || !read_number(text_p, 1, MOST_SAMPLES, &samples))
            return false;
        e->of[e->size++] = (uint32_t)samples;
        sum += samples;
    } while (**text_p == '/');
    return sum <= MOST_SAMPLES;
}

static void add(struct train_shares_plan *plan, const struct train_shares_entry *e)
{
    if ((plan->count & (plan->count - 1)) == 0)
        plan->at =
            base_realloc(plan->at, plan->count > 0 ? 2 * (size_t)plan->count : 1, sizeof *plan->at);
    plan->at[plan->count++] = *e;
}

base_status train_shares_plan_parse(const char *text, struct train_shares_plan *plan)
{
    const char *at = text + strlen(TRAIN_SHARES_AT);
    struct train_shares_entry e;
    int64_t before = 0;

    *plan = (struct train_shares_plan){0};
    if (strncmp(text, TRAIN_SHARES_AT, strlen(TRAIN_SHARES_AT)) != 0)
        return BASE_OK;
    for (;; at++) {
        if (plan->count == MOST_ENTRIES || !read_entry(&at, &e) || e.step <= before ||
            (*at != ',' && *at != '\0')) {
            train_shares_plan_fini(plan);
            return base_fail(BASE_ERR_USAGE,
                             "--shares %.40s is not of the form at:STEP=SAMPLES/SAMPLES/…,STEP=… "
                             "with rising steps",
                             text);
        }
        add(plan, &e);
        before = e.step;
        if (*at == '\0')
            return BASE_OK;
    }
}

void train_shares_plan_fini(struct train_shares_plan *plan)
{
    base_free(plan->at);
    *plan = (struct train_shares_plan){0};
}

const struct train_shares_entry *train_shares_plan_at(const struct train_shares_plan *plan,
                                                      int64_t step)
{
    const struct train_shares_entry *found = NULL;

    for (int i = 0; i < plan->count && plan->at[i].step <= step; i++)
        found = &plan->at[i];
    return found;
}

base_status train_shares_entry_fits(const struct train_shares_entry *entry, int workers)
{
    if (entry->size == workers)
        return BASE_OK;
    return base_fail(BASE_ERR_USAGE,
                     "the shares of step %" PRId64 " are those of %d workers; there %s %d",
                     entry->step, entry->size, workers == 1 ? "is" : "are", workers);
}

/* ---- of a run ---- */

static bool read_event(const struct base_event_line *line, struct train_shares_entry *e)
{
    json_t *event = base_event_json(line), *samples = json_object_get(event, "samples"), *value;
    size_t index;
    bool good = json_array_size(samples) >= 1 && json_array_size(samples) <= COMM_MAX_WORKERS;

    *e = (struct train_shares_entry){.step = json_integer_value(json_object_get(event, "step"))};
    if (good)
        json_array_foreach(samples, index, value) e->of[e->size++] =
            (uint32_t)json_integer_value(value);
    json_decref(event);
    return good && e->step > 0;
}

/* Events that say after which step the run goes on take back what came later; shares are even then,
 * unless an event says otherwise. */
static void read_line(const struct base_event_line *line, struct train_shares_plan *plan)
{
    double step;
    struct train_shares_entry e;
    bool goes_on = base_event_rewinds(line, &step);

    if (!isfinite(step) || (!goes_on && !base_event_is(line, "shares")))
        return;
    while (plan->count > 0 && (double)plan->at[plan->count - 1].step > step - !goes_on)
        plan->count--;
    if (goes_on && plan->count > 0) {
        e = plan->at[plan->count - 1];
        e.step = (int64_t)step + 1;
        for (int i = 0; i < e.size; i++)
            e.of[i] = 1;
    }
    if (plan->count < MOST_ENTRIES && (goes_on ? plan->count > 0 : read_event(line, &e)))
        add(plan, &e);
}

base_status train_shares_recorded(const struct train_run *run, char **text_p)
{
    base_status st = BASE_OK;
    struct base_event_reader *reader = NULL;
    const struct base_event_line *line;
    struct train_shares_plan plan = {0};
    struct base_str text = {0};

    *text_p = NULL;
    TRY(base_event_reader_open(run->events, &reader));
    while ((line = base_event_next(reader)) != NULL)
        read_line(line, &plan);
    base_str_add(&text, "%s", plan.count > 0 ? TRAIN_SHARES_AT : "even");
    for (int i = 0; i < plan.count; i++) {
        base_str_add(&text, "%s%" PRId64, i > 0 ? "," : "", plan.at[i].step);
        for (int k = 0; k < plan.at[i].size; k++)
            base_str_add(&text, "%s%u", k > 0 ? "/" : "=", plan.at[i].of[k]);
    }
    *text_p = text.text;
out:
    base_event_reader_close(reader);
    train_shares_plan_fini(&plan);
    return st;
}
