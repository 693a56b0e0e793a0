/* SPDX-License-Identifier: MIT
 *
 * Which algorithm runs: the one a person forced, or the one with the least estimate. Estimates are
 * made of numbers that are the same on every rank (coll/cost.c), so that all choose alike.
 */
#include "coll/coll_private.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static const struct coll_algorithm *find(enum coll_kind kind, const char *name, size_t length)
{
    for (size_t i = 0; i < coll_algorithm_count; i++) {
        const struct coll_algorithm *a = coll_algorithm_registry[i];

        if (a->kind == kind && strlen(a->name) == length && strncmp(a->name, name, length) == 0)
            return a;
    }
    return NULL;
}

static base_status force(struct coll *c, enum coll_kind kind, const struct coll_algorithm *a)
{
    const char *why = coll_size(c) > 1 && a->unfit != NULL ? a->unfit(c) : NULL;

    if (why != NULL)
        return base_fail(BASE_ERR_USAGE, "%s=%s %s", coll_kind_names[kind], a->name, why);
    c->forced[kind] = a;
    return BASE_OK;
}

/* Forces the algorithm `name` of one kind. The list of names is for the message alone. */
static base_status force_one(struct coll *c, enum coll_kind kind, const char *name)
{
    const struct coll_algorithm *a = find(kind, name, strlen(name));
    const char *names[64];
    size_t count = 0;

    if (a != NULL)
        return force(c, kind, a);
    for (size_t i = 0; i < coll_algorithm_count && count < 64; i++)
        if (coll_algorithm_registry[i]->kind == kind)
            names[count++] = coll_algorithm_registry[i]->name;
    return base_unknown(BASE_ERR_USAGE, coll_kind_names[kind], name, names, count);
}

/* Several kinds have an algorithm of the same name: the message lists it once. */
static base_status unknown(const char *name)
{
    const char *names[64];
    size_t count = 0;

    for (size_t i = 0; i < coll_algorithm_count && count < 64; i++) {
        const char *known = coll_algorithm_registry[i]->name;
        size_t at = 0;

        while (at < count && strcmp(names[at], known) != 0)
            at++;
        names[at] = known;
        count += at == count;
    }
    return base_unknown(BASE_ERR_USAGE, "algorithm of collectives", name, names, count);
}

/* Forces the algorithm `name` for every kind that has one. */
static base_status force_all(struct coll *c, const char *name)
{
    base_status st = BASE_OK;
    bool known = false;

    for (int kind = 0; kind < COLL_KINDS; kind++) {
        const struct coll_algorithm *a = find((enum coll_kind)kind, name, strlen(name));

        if (a != NULL)
            TRY(force(c, (enum coll_kind)kind, a));
        known |= a != NULL;
    }
    if (!known)
        TRY(unknown(name));
out:
    return st;
}

static base_status force_word(struct coll *c, const char *word)
{
    const char *equals = strchr(word, '=');

    if (equals == NULL)
        return force_all(c, word);
    for (int kind = 0; kind < COLL_KINDS; kind++)
        if (strlen(coll_kind_names[kind]) == (size_t)(equals - word) &&
            strncmp(coll_kind_names[kind], word, (size_t)(equals - word)) == 0)
            return force_one(c, (enum coll_kind)kind, equals + 1);
    return base_unknown(BASE_ERR_USAGE, "kind of collective", word, coll_kind_names, COLL_KINDS);
}

base_status coll_force(struct coll *c, const char *forced)
{
    base_status st = BASE_OK;
    char *copy = base_strdup(forced != NULL ? forced : "auto"), *rest = NULL;

    memset(c->forced, 0, sizeof c->forced);
    for (char *word = strtok_r(copy, " ,", &rest); word; word = strtok_r(NULL, " ,", &rest))
        if (strcmp(word, "auto") != 0)
            TRY(force_word(c, word));
out:
    base_free(copy);
    return st;
}

base_status coll_force_check(const char *forced)
{
    struct coll alone = {.world.size = 1};

    return coll_force(&alone, forced);
}

base_status coll_choose_open(struct coll *c, const char *forced)
{
    base_status st = BASE_OK;

    TRY(coll_force(c, forced));
    for (int kind = 0; kind < COLL_KINDS; kind++) {
        size_t count = 0;

        c->fit[kind] = base_calloc(coll_algorithm_count + 1, sizeof(void *));
        for (size_t i = 0; i < coll_algorithm_count; i++) {
            const struct coll_algorithm *a = coll_algorithm_registry[i];

            if ((int)a->kind == kind && (a->unfit == NULL || a->unfit(c) == NULL))
                c->fit[kind][count++] = a;
        }
    }
out:
    return st;
}

void coll_choose_close(struct coll *c)
{
    for (int kind = 0; kind < COLL_KINDS; kind++)
        base_free(c->fit[kind]);
}

const struct coll_algorithm *coll_choose(const struct coll *c, const struct coll_call *call)
{
    const struct coll_algorithm *const *fit = c->fit[call->kind], *best = fit[0];
    double least;

    if (c->forced[call->kind] != NULL)
        return c->forced[call->kind];
    if (best == NULL || fit[1] == NULL)
        return best;
    least = best->estimate(c, call);
    for (size_t i = 1; fit[i] != NULL; i++) {
        double seconds = fit[i]->estimate(c, call);

        if (seconds < least) {
            least = seconds;
            best = fit[i];
        }
    }
    return best;
}
