/* SPDX-License-Identifier: MIT
 *
 * Which algorithm runs: the one a person forced, or the one with the least estimate. Estimates use
 * what was measured on this group when it was opened, and all ranks use the same numbers, so that
 * all choose alike.
 */
#include "coll/coll_private.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/registry.h"
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

/* `name` for one kind; NULL-ended lists are made for the message alone. */
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

/* `name` for every kind that has it. */
static base_status force_all(struct coll *c, const char *name)
{
    base_status st = BASE_OK;
    const struct coll_algorithm *known;

    TRY(base_registry_find("collective", name, coll_algorithm_registry, coll_algorithm_count,
                           &known));
    for (int kind = 0; kind < COLL_KINDS; kind++) {
        const struct coll_algorithm *a = find((enum coll_kind)kind, name, strlen(name));

        if (a != NULL)
            TRY(force(c, (enum coll_kind)kind, a));
    }
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

static base_status force_words(struct coll *c, const char *forced)
{
    base_status st = BASE_OK;
    char *copy = base_strdup(forced), *rest = NULL;

    for (char *word = strtok_r(copy, " ,", &rest); word; word = strtok_r(NULL, " ,", &rest))
        if (strcmp(word, "auto") != 0)
            TRY(force_word(c, word));
out:
    base_free(copy);
    return st;
}

base_status coll_choose_open(struct coll *c, const char *forced)
{
    base_status st = BASE_OK;

    if (forced != NULL)
        TRY(force_words(c, forced));
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

const struct coll_algorithm *coll_choose(const struct coll *c, enum coll_kind kind,
                                         const struct coll_call *call)
{
    const struct coll_algorithm *best = c->fit[kind][0];
    double least;

    if (c->forced[kind] != NULL)
        return c->forced[kind];
    if (best == NULL || c->fit[kind][1] == NULL)
        return best;
    least = best->estimate(c, call);
    for (size_t i = 1; c->fit[kind][i] != NULL; i++) {
        double seconds = c->fit[kind][i]->estimate(c, call);

        if (seconds < least) {
            least = seconds;
            best = c->fit[kind][i];
        }
    }
    return best;
}

/* ---- what messages cost */

/* Everybody sends `count` bytes to the next rank; the best of `times`, from the second on. */
static base_status time_neighbours(struct coll *c, size_t count, int times, double *seconds_p)
{
    base_status st = BASE_OK;
    const struct coll_call call = {.deadline = coll_deadline(c)};
    int n = c->world.size;

    *seconds_p = 1e9;
    for (int i = 0; i <= times; i++) {
        void *bytes[] = {c->stage, c->stage + COLL_WINDOW * (size_t)COLL_CHUNK};
        size_t counts[] = {count, count};
        double start = base_now(), seconds;

        coll_flow_init(&c->flows[0], (c->world.me + 1) % n, true);
        coll_flow_init(&c->flows[1], (c->world.me + n - 1) % n, false);
        TRY(coll_flow_move(c, &call, c->flows, bytes, counts, 2));
        seconds = base_now() - start;
        if (i > 0 && seconds < *seconds_p)
            *seconds_p = seconds;
    }
out:
    return st;
}

/* What each rank saw; the slowest counts, so that all have the same numbers. */
struct seen {
    double message, byte;
    uint64_t shares; /* with all ranks of its host */
};

static base_status agree(struct coll *c, struct seen *seen)
{
    base_status st = BASE_OK;
    struct seen *all = base_calloc((size_t)c->world.size, sizeof *all);
    const struct coll_call call = {
        .out = all, .count = sizeof *all, .deadline = coll_deadline(c)};
    struct coll_blocks blocks;

    all[c->world.me] = *seen;
    coll_blocks_of(&call, &c->world, &blocks);
    TRY(coll_direct(c, &call, &c->world, &blocks, COLL_PHASE_GATHER));
    for (int i = 0; i < c->world.size; i++) {
        seen->message = all[i].message > seen->message ? all[i].message : seen->message;
        seen->byte = all[i].byte > seen->byte ? all[i].byte : seen->byte;
        seen->shares &= all[i].shares;
    }
out:
    base_free(all);
    return st;
}

static void only_me(struct coll_team *team, int rank)
{
    *team = (struct coll_team){.size = 1, .me = 0, .rank = {rank}};
}

base_status coll_find_teams(struct coll *c)
{
    base_status st = BASE_OK;
    struct seen seen = {.shares = 1};
    int ranks[COMM_MAX_WORKERS], count = comm_group_locals(c->group, ranks);

    for (int i = 0; i < count; i++)
        if (ranks[i] != c->world.me && !(comm_group_can(c->group, ranks[i]) & COMM_CAN_SHARE))
            seen.shares = 0;
    TRY(agree(c, &seen));
    only_me(&c->locals, c->world.me);
    c->leaders = c->world;
    if (seen.shares) {
        c->locals.size = count;
        memcpy(c->locals.rank, ranks, sizeof ranks);
        c->locals.me = coll_team_find(&c->locals, c->world.me);
        c->leaders.size = comm_group_leaders(c->group, c->leaders.rank);
        c->leaders.me = coll_team_find(&c->leaders, c->world.me);
    }
out:
    return st;
}

base_status coll_cost_measure(struct coll *c)
{
    enum { MANY = COLL_WINDOW * COLL_CHUNK };
    base_status st = BASE_OK;
    struct seen seen = {0};
    double few, many;

    c->cost = (struct coll_cost){3e-6, 1 / 3e9}; /* messages through shared memory */
    if (coll_shares(c))
        return BASE_OK;
    TRY(time_neighbours(c, 1, 8, &few));
    TRY(time_neighbours(c, MANY, 2, &many));
    seen.message = few;
    seen.byte = many > few ? (many - few) / MANY : 0;
    TRY(agree(c, &seen));
    c->cost = (struct coll_cost){seen.message, seen.byte};
out:
    return st;
}

double coll_cost_of(const struct coll *c, double messages, double bytes)
{
    return messages * c->cost.message + bytes * c->cost.byte;
}

double coll_local_cost(const struct coll *c, double barriers, double bytes)
{
    (void)c;
    return barriers * 0.5e-6 + bytes / 20e9;
}

double coll_log2(int n)
{
    int bits = 0;

    while (1 << bits < n)
        bits++;
    return bits;
}

double coll_bytes_of(const struct coll *c, const struct coll_call *call)
{
    return call->x != NULL ? (double)call->count * sizeof(float)
                           : (double)call->count * coll_size(c);
}

const char *coll_unfit_apart(const struct coll *c)
{
    return coll_shares(c) ? NULL : "needs shared memory between all ranks";
}

const char *coll_unfit_flat(const struct coll *c)
{
    if (c->leaders.size > 1 && c->leaders.size < c->world.size)
        return NULL;
    return "needs several hosts, one of them with several workers that share memory";
}
