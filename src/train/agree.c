/* SPDX-License-Identifier: MIT */
#include "train/agree.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

struct note { /* what a member says of itself */
    struct train_holds holds;
    uint64_t size[TRAIN_GROUPS]; /* of the state that it has some of */
    int64_t saved_step;
    int64_t back_from; /* if all go back, then from this step; -1: it knows none */
    uint32_t has_run;  /* knows the run */
    uint32_t begun;    /* knows from where the state can begin again */
    uint32_t founds;   /* was there from the beginning and may make a state */
    uint32_t shape;
    uint32_t count[DATA_PARTS];
    char digest[BASE_SHA256_HEX];
    char excluded[BASE_SHA256_HEX]; /* of the index of --exclude; "": none */
};

static struct note *note_of(const struct train_session *s)
{
    struct note *n = base_calloc(1, sizeof *n);

    n->saved_step = s->saved_step;
    n->back_from = s->back_from > s->reached ? s->back_from : s->reached;
    n->has_run = s->run.path != NULL;
    n->begun = s->begun;
    n->founds = train_team_since(&s->team) <= 1;
    n->shape = s->shape;
    memcpy(n->count, s->count, sizeof n->count);
    memcpy(n->digest, s->digest, sizeof n->digest);
    snprintf(n->excluded, sizeof n->excluded, "%s", s->excluded);
    if (s->whole) {
        train_state_holds(&s->state, &n->holds);
        train_state_sizes(&s->state, n->size);
    }
    return n;
}

static bool has_own_data(const struct train_session *s)
{
    return s->strategy->own_data != NULL && s->strategy->own_data(s->options);
}

/* A worker that has other data than the source leaves; the others go on in the view that follows.
 */
static base_status check_data(const struct train_session *s, const struct note *all, int source)
{
    const struct comm_member *members = s->team.view.members;
    int odd = -1, rank = s->team.exchange.rank;
    bool own = has_own_data(s);

    for (int i = 0; i < s->team.exchange.size; i++) {
        const struct note *a = &all[i], *b = &all[source];
        bool same = own ? a->shape == b->shape
                        : memcmp(a->digest, b->digest, sizeof a->digest) == 0 &&
                              memcmp(a->excluded, b->excluded, sizeof a->excluded) == 0;

        if (odd != rank && !same)
            odd = i;
    }
    if (odd < 0)
        return BASE_OK;
    return base_fail(odd == rank ? BASE_ERR_DATA : BASE_ERR_PEER_LOST,
                     "%s %s for worker %u and worker %u", s->job->data,
                     own ? "has not the same shape and classes" : "is not the same data",
                     members[source].id, members[odd].id);
}

/* The lowest rank that has something of a version; -1: none has. */
static int lowest_with(const struct train_holds *held, int size, struct train_version version)
{
    for (int rank = 0; rank < size; rank++)
        for (uint32_t i = 0; i < held[rank].count; i++)
            if (train_version_compare(held[rank].at[i].version, version) == 0)
                return rank;
    return -1;
}

/* Whose sizes count: all workers that have some of the state agree about them. */
static int lowest_holder(const struct train_holds *held, int size)
{
    int rank = 0;

    while (rank < size && held[rank].count == 0)
        rank++;
    return rank < size ? rank : -1;
}

static base_status find_committed(const struct note *all, int size, struct train_agreed *a)
{
    int holder = lowest_holder(a->held, size);

    a->version = a->newest = (struct train_version){-1, -1};
    for (int rank = 0; rank < size; rank++) {
        if (all[rank].back_from > a->newest.step)
            a->newest = (struct train_version){.step = all[rank].back_from};
        if (a->held[rank].count > 0 && !train_holds_valid(&a->held[rank], all[holder].size))
            return base_fail(BASE_ERR_DATA, "a worker holds what the model does not have");
        for (uint32_t i = 0; i < a->held[rank].count; i++)
            if (train_version_compare(a->held[rank].at[i].version, a->newest) > 0)
                a->newest = a->held[rank].at[i].version;
    }
    if (holder >= 0 && train_holds_committed(a->held, size, all[holder].size, &a->version)) {
        a->source = lowest_with(a->held, size, a->version);
        return BASE_OK;
    }
    a->version = (struct train_version){-1, -1};
    a->source = 0;
    return BASE_OK;
}

/* Several workers may know the run; the one that describes the state is asked first. */
static void find_run(const struct note *all, int size, struct train_agreed *a)
{
    a->run_source = -1;
    for (int i = size - 1; i >= 0; i--)
        if (all[i].has_run && a->run_source != a->source)
            a->run_source = i;
}

base_status train_agree(struct train_session *s, struct train_agreed *a)
{
    base_status st = BASE_OK;
    int size = s->team.exchange.size;
    struct note *mine = note_of(s), *all = base_calloc((size_t)size, sizeof *all);

    *a = (struct train_agreed){.held = base_calloc((size_t)size, sizeof *a->held)};
    TRY(train_team_gather(&s->team, mine, sizeof *mine, all));
    for (int i = 0; i < size; i++)
        a->held[i] = all[i].holds;
    TRY(find_committed(all, size, a));
    find_run(all, size, a);
    a->saved_step = all[0].saved_step;
    for (int i = size - 1; i >= 0 && a->version.step < 0; i--)
        if (all[i].begun) {
            a->back = true;
            a->source = i;
        }
    a->fresh = a->version.step < 0 && !a->back;
    TRY(check_data(s, all, a->source));
    if (has_own_data(s))
        memcpy(s->count, all[a->source].count, sizeof s->count);
    if (a->fresh && !all[a->source].founds)
        TRY(base_fail(BASE_ERR_DATA, "%s", TRAIN_STATE_UNKNOWN));
out:
    base_free(mine);
    base_free(all);
    return st;
}

void train_agree_places(const struct train_session *s, struct train_agreed *a)
{
    base_free(a->places);
    a->places = train_session_places(s);
}

void train_agreed_fini(struct train_agreed *a)
{
    base_free(a->held);
    base_free(a->places);
    *a = (struct train_agreed){0};
}
