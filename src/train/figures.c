/* SPDX-License-Identifier: MIT */
#include "train/figures.h"

#include <string.h>

#include "base/mem.h"

/* Seconds between two of train_figures_tell's messages. */
static const double TELL_EVERY = 1.0;

static json_t *sum_of(const json_t *a, const json_t *b, bool most)
{
    double x = json_number_value(a), y = json_number_value(b);
    json_int_t i = json_integer_value(a), j = json_integer_value(b);

    if (json_is_integer(a) && json_is_integer(b))
        return json_integer(most ? (i > j ? i : j) : i + j);
    return json_real(most ? (x > y ? x : y) : x + y);
}

static void add_list(json_t *sum, const json_t *more, bool most)
{
    for (size_t i = 0; i < json_array_size(more); i++) {
        const json_t *value = json_array_get(more, i);

        if (!json_is_number(value))
            continue;
        if (i >= json_array_size(sum))
            json_array_append(sum, (json_t *)(uintptr_t)value);
        else
            json_array_set_new(sum, i, sum_of(json_array_get(sum, i), value, most));
    }
}

void train_figures_add(json_t *sum, const json_t *more)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)more, name, value)
    {
        json_t *before = json_object_get(sum, name);
        bool most = strncmp(name, "most_", 5) == 0;

        if (before == NULL)
            json_object_set_new(sum, name, json_deep_copy(value));
        else if (json_is_number(before) && json_is_number(value))
            json_object_set_new(sum, name, sum_of(before, value, most));
        else if (json_is_array(before) && json_is_array(value))
            add_list(before, value, most);
        else if (json_is_object(before) && json_is_object(value))
            train_figures_add(before, value);
    }
}

base_status train_figures_gather(struct train_session *s)
{
    base_status st = BASE_OK;
    json_t *mine = NULL, *sum = json_object(), *more = NULL;

    if (s->strategy->figures == NULL)
        goto out;
    mine = s->strategy->figures(s);
    for (int rank = 0; rank < s->team.exchange.size; rank++) {
        more = rank == s->team.exchange.rank ? json_incref(mine) : NULL;
        TRY(train_team_tell(&s->team, rank, &more));
        train_figures_add(sum, more);
        json_decref(more);
        more = NULL;
    }
    json_decref(s->figures);
    s->figures = json_object_size(sum) > 0 ? json_incref(sum) : NULL;
out:
    json_decref(more);
    json_decref(mine);
    json_decref(sum);
    return st;
}

void train_figures_tell(struct train_session *s, double now)
{
    json_t *mine;
    char *slow;

    if ((s->strategy->figures == NULL && !s->slow.changed) || s->team.worker == NULL ||
        now < s->next_figures)
        return;
    s->next_figures = now + TELL_EVERY;
    mine = s->strategy->figures != NULL ? s->strategy->figures(s) : json_object();
    slow = train_slow_text(&s->slow);
    if (slow != NULL)
        json_object_set_new(mine, TRAIN_FIGURES_ANOMALY, json_string(slow));
    base_free(slow);
    s->slow.changed = false;
    if (json_object_size(mine) > 0)
        cluster_worker_figures(s->team.worker, mine);
    json_decref(mine);
}
