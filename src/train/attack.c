/* SPDX-License-Identifier: MIT */
#include "train/attack.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/registry.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/thread.h"

/* "=STRENGTH", or nothing. */
static base_status parse_strength(const char *text, struct train_attacker *a)
{
    char *end = NULL;

    a->strength = a->attack->strength;
    if (*text == '\0')
        return BASE_OK;
    if (a->attack->unit == NULL)
        return base_fail(BASE_ERR_USAGE, "--attack: %s takes no strength", a->attack->name);
    a->strength = strtod(text + 1, &end);
    if (end == text + 1 || *end != '\0' || !(a->strength >= 0 && a->strength <= a->attack->most))
        return base_fail(BASE_ERR_USAGE, "--attack: %s=%s is not %s from 0 to %g", a->attack->name,
                         text + 1, a->attack->unit, a->attack->most);
    return BASE_OK;
}

/* "WORKER:KIND[=STRENGTH]" */
static base_status parse_one(const char *text, struct train_attackers *attackers)
{
    base_status st = BASE_OK;
    struct train_attacker *a = &attackers->of[attackers->count];
    char *name = NULL;
    int used = 0;

    if (attackers->count == COMM_MAX_WORKERS)
        return base_fail(BASE_ERR_USAGE, "--attack names more than %d workers", COMM_MAX_WORKERS);
    if (text[0] < '0' || text[0] > '9' || /* which sscanf would take: a sign, spaces */
        sscanf(text, "%9" SCNu32 ":%n", &a->worker, &used) != 1 || used == 0 || a->worker == 0)
        return base_fail(BASE_ERR_USAGE,
                         "--attack: '%s' is not WORKER:KIND, as in 3:sign-flip; workers count "
                         "from 1",
                         text);
    if (train_attackers_find(attackers, a->worker) != NULL)
        return base_fail(BASE_ERR_USAGE, "--attack names worker %" PRIu32 " twice", a->worker);
    name = base_strndup(text + used, strcspn(text + used, "="));
    TRY(base_registry_find("attack", name, train_attack_registry, train_attack_count, &a->attack));
    TRY(parse_strength(text + used + strlen(name), a));
    attackers->count++;
out:
    base_free(name);
    return st;
}

base_status train_attackers_parse(const char *text, uint32_t own,
                                  struct train_attackers *attackers_p)
{
    base_status st = BASE_OK;
    char *list = base_strdup(text != NULL ? text : ""), *rest = NULL;

    *attackers_p = (struct train_attackers){0};
    for (char *at = strtok_r(list, ",", &rest); at != NULL; at = strtok_r(NULL, ",", &rest))
        TRY(parse_one(at, attackers_p));
    if (text != NULL && attackers_p->count == 0)
        TRY(base_fail(BASE_ERR_USAGE, "--attack names no worker; 3:sign-flip is one"));
    attackers_p->own = train_attackers_find(attackers_p, own);
out:
    base_free(list);
    return st;
}

void train_attackers_fini(struct train_attackers *attackers)
{
    base_free(attackers->labels);
    base_free(attackers->x);
    *attackers = (struct train_attackers){0};
}

const struct train_attacker *train_attackers_find(const struct train_attackers *attackers,
                                                  uint32_t worker)
{
    for (int i = 0; i < attackers->count; i++)
        if (attackers->of[i].worker == worker)
            return &attackers->of[i];
    return NULL;
}

const struct train_attack *train_attackers_backdoor(const struct train_attackers *attackers)
{
    for (int i = 0; i < attackers->count; i++)
        if (attackers->of[i].attack->trigger != NULL)
            return attackers->of[i].attack;
    return NULL;
}

base_status train_attackers_check(const struct train_attackers *attackers,
                                  const struct data_info *info)
{
    for (int i = 0; i < attackers->count; i++) {
        const struct train_attack *a = attackers->of[i].attack;

        if (a->taint != NULL && data_is_regression(info))
            return base_fail(BASE_ERR_USAGE,
                             "--attack: a number is to be predicted, which has no label for %s",
                             a->name);
        if (a->images && info->table != NULL)
            return base_fail(BASE_ERR_USAGE,
                             "--attack: %s puts a mark on images, and %s is a table", a->name,
                             info->name);
    }
    return BASE_OK;
}

char *train_attackers_text(const struct train_attackers *attackers)
{
    struct base_str text = {0};

    for (int i = 0; i < attackers->count; i++)
        base_str_add(&text, "%sworker %" PRIu32 " %s", i > 0 ? ", " : "", attackers->of[i].worker,
                     attackers->of[i].attack->name);
    return text.text;
}

void train_attackers_say(const struct train_attackers *a, const struct comm_view *view)
{
    char *text = a->count > 0 ? train_attackers_text(a) : NULL;

    if (a->count > 0)
        base_warn("--attack: this run is attacked on purpose: %s", text);
    for (int i = 0; i < a->count; i++)
        if (comm_view_rank(view, a->of[i].worker) < 0)
            base_warn("--attack: there is no worker %u now", a->of[i].worker);
    base_free(text);
}

/* ---- updates that are forged ---- */

void train_forgery_mean(const struct train_forgery *f, float *y)
{
    const struct train_updates updates = {.rows = f->rows, .count = f->count};
    float *weights = base_calloc((size_t)f->count, sizeof *weights);

    for (int i = 0; i < f->count; i++)
        weights[i] = f->hostile[i] ? 0 : 1.0f / (float)f->honest;
    train_rows_sum(&updates, weights, f->floats, y);
    base_free(weights);
}

/* The manager would refuse an update that is not. */
static void make_finite(float *y, size_t floats)
{
    for (size_t i = 0; i < floats; i++)
        y[i] = isfinite(y[i]) ? y[i] : 0;
}

static uint64_t forgery_seed(const struct train_attacker *a, uint64_t seed, int64_t step)
{
    return base_rng_mix(base_rng_mix(seed + (uint64_t)step) + a->worker);
}

base_status train_attackers_forge(const struct train_attackers *attackers, struct train_row *rows,
                                  int count, size_t floats, uint64_t seed, int64_t step,
                                  float **forged_p)
{
    base_status st = BASE_OK;
    bool *hostile = base_calloc((size_t)count, sizeof *hostile);
    struct train_forgery f = {.rows = rows, .count = count, .hostile = hostile, .floats = floats};
    size_t at = 0;

    *forged_p = NULL;
    for (int i = 0; i < count; i++) {
        const struct train_attacker *a = train_attackers_find(attackers, rows[i].worker);

        hostile[i] = a != NULL && a->attack->forge != NULL;
        f.honest += !hostile[i];
    }
    if (f.honest == count || f.honest == 0)
        goto out;
    TRY(base_tensor((size_t)(count - f.honest) * floats, sizeof **forged_p, "forged updates",
                    forged_p));
    for (f.row = 0; f.row < count; f.row++) {
        const struct train_attacker *a = train_attackers_find(attackers, rows[f.row].worker);

        if (!hostile[f.row])
            continue;
        f.strength = a->strength;
        f.seed = forgery_seed(a, seed, step);
        a->attack->forge(&f, *forged_p + at * floats);
        make_finite(*forged_p + at++ * floats, floats);
    }
    at = 0;
    for (int i = 0; i < count; i++) /* after all: each attacker has seen what was sent */
        if (hostile[i])
            rows[i].values = *forged_p + at++ * floats;
out:
    base_free(hostile);
    return st;
}

/* ---- this worker ---- */

bool train_attack_is_own(const struct train_attack *a, bool defended)
{
    return a->alone || a->taint != NULL || a->delay != NULL ||
           (defended && (a->lie != NULL || a->breaks_promises || a->misleads || a->accuses));
}

base_status train_attackers_forge_own(const struct train_attackers *attackers, uint64_t seed,
                                      int64_t step, size_t floats, float *x)
{
    base_status st = BASE_OK;
    const struct train_attacker *own = attackers->own;
    const struct train_row row = {.values = x};
    struct train_forgery f = {.rows = &row, .count = 1, .floats = floats};
    float *y = NULL;

    if (own == NULL || own->attack->forge == NULL)
        return BASE_OK;
    f.strength = own->strength;
    f.seed = forgery_seed(own, seed, step);
    TRY(base_tensor(floats, sizeof *y, "a forged update", &y));
    own->attack->forge(&f, y);
    make_finite(y, floats);
    memcpy(x, y, floats * sizeof *y);
out:
    base_free(y);
    return st;
}

/* Room for the labels of `count` samples, and for `floats` values of each. */
static base_status make_room(struct train_attackers *a, uint32_t count, size_t floats)
{
    base_status st = BASE_OK;

    if (count <= a->room)
        goto out;
    base_free(a->labels);
    base_free(a->x);
    a->x = NULL;
    a->room = 0;
    a->labels = base_calloc(count, sizeof *a->labels);
    if (a->own->attack->images)
        TRY(base_tensor(count * floats, sizeof *a->x, "tainted images", &a->x));
    a->room = count;
out:
    return st;
}

base_status train_attackers_taint(struct train_attackers *a, const struct data_info *info,
                                  struct data_batch *b)
{
    base_status st = BASE_OK;
    const size_t floats = (size_t)info->channels * (size_t)info->height * (size_t)info->width;
    struct train_taint taint = {.info = info, .count = b->count, .ids = b->ids};

    if (a->own == NULL || a->own->attack->taint == NULL || b->count == 0)
        goto out;
    TRY(make_room(a, b->count, floats));
    memcpy(a->labels, b->labels, b->count * sizeof *a->labels);
    b->labels = taint.labels = a->labels;
    if (a->own->attack->images) {
        memcpy(a->x, b->x, b->count * floats * sizeof *a->x);
        b->x = taint.x = a->x;
    }
    taint.strength = a->own->strength;
    a->own->attack->taint(&taint);
out:
    return st;
}

void train_attackers_delay(const struct train_attackers *attackers, const struct train_pause *pause)
{
    const struct train_attacker *own = attackers->own;

    if (own != NULL && own->attack->delay != NULL)
        base_sleep_until(base_now() + own->attack->delay(own->strength, pause));
}
