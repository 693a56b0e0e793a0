/* SPDX-License-Identifier: MIT */
#include "train/copies.h"

#include <assert.h>
#include <omp.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/mem.h"

/* Floats; sums of a tile stay in the first cache. */
enum { TILE = 4096, BLOCK = NN_UPDATE_BLOCK, PAD = 48 };
static_assert(TILE % BLOCK == 0);

double train_copies_bytes(double weights, int slots)
{
    return 2 * (1 + slots) * (weights + PAD * sizeof(float));
}

static int buffers_of(const struct train_state *state)
{
    return 1 + state->optimiser->slots;
}

static float **buffer_of(struct train_state *state, int index)
{
    return index == 0 ? &state->weights : &state->slots[index - 1];
}

static float *at(const struct train_copies *c, const struct train_state *state, int copy, int index)
{
    return (float *)c->shared.at + c->stride * (size_t)(copy * buffers_of(state) + index);
}

/* The state is this copy. */
static void point(const struct train_copies *c, struct train_state *state)
{
    for (int i = 0; i < buffers_of(state); i++)
        *buffer_of(state, i) = at(c, state, c->current, i);
}

/* The address stays, the memory goes: to fill it again cannot fail. */
static void give_pages_back(float *memory, size_t floats)
{
    const uintptr_t page = 4096;
    uintptr_t from = ((uintptr_t)memory + page - 1) / page * page;
    uintptr_t to = (uintptr_t)(memory + floats) / page * page;

    if (to > from)
        (void)madvise((void *)from, to - from, MADV_DONTNEED); /* only memory is at stake */
}

base_status train_copies_open(struct train_copies *c, const struct train_exchange *x,
                              struct train_state *state)
{
    base_status st = BASE_OK;
    size_t bytes, from, count;

    *c = (struct train_copies){0};
    TRY(base_add(state->floats, PAD + 15, &c->stride));
    c->stride -= c->stride % 16;
    TRY(base_mul(c->stride * sizeof(float), 2 * (size_t)buffers_of(state), &bytes));
    TRY(coll_share(x->coll, "copies", bytes, &c->shared));
    coll_slice(state->floats, x->rank, x->size, &from, &count);
    for (int i = 0; i < buffers_of(state); i++)
        memcpy(at(c, state, 0, i) + from, *buffer_of(state, i) + from, count * sizeof(float));
    c->differ = base_calloc(count / BLOCK + 1, sizeof *c->differ);
    memset(c->differ, true, (count / BLOCK + 1) * sizeof *c->differ);
    TRY(coll_barrier(x->coll));
    for (int i = 0; i < buffers_of(state); i++) {
        c->home[i] = *buffer_of(state, i);
        give_pages_back(c->home[i], state->floats);
    }
    point(c, state);
out:
    if (st != BASE_OK) {
        comm_shared_close(&c->shared);
        base_free(c->differ);
        c->differ = NULL;
    }
    return st;
}

void train_copies_close(struct train_copies *c, struct train_state *state)
{
    if (c->shared.at == NULL)
        return;
    for (int i = 0; i < buffers_of(state); i++) {
        memcpy(c->home[i], *buffer_of(state, i), state->floats * sizeof(float));
        *buffer_of(state, i) = c->home[i];
    }
    comm_shared_close(&c->shared);
    base_free(c->differ);
    *c = (struct train_copies){0};
}

static void copy_block(const struct nn_update *u, int slots)
{
    memcpy(u->weight_out, u->weight_in, u->count * sizeof(float));
    for (int slot = 0; slot < slots; slot++)
        memcpy(u->slot_out[slot], u->slot_in[slot], u->count * sizeof(float));
}

/* `differ`: of the first block. */
static void update_lazily(const struct train_update *by, const struct nn_update *u, bool *differ)
{
    for (size_t from = 0; from < u->count; from += BLOCK, differ++) {
        const size_t count = u->count - from < BLOCK ? u->count - from : BLOCK;
        const struct nn_update block = nn_update_part(by->optimiser, u, from, count);
        const bool idle = nn_update_is_idle(block.gradient, count);

        if (!idle)
            by->optimiser->update(&by->hyper, &block);
        else if (*differ)
            copy_block(&block, by->optimiser->slots);
        *differ = !idle;
    }
}

/* A tile of the slice that begins with float `slice` of the model; returns the seconds that its
 * sums took. */
static double update_tile(const struct train_copies *c, const struct train_exchange *x,
                          const struct train_update *by, const struct train_state *state,
                          size_t slice, size_t done, size_t count)
{
    const size_t from = slice + done;
    _Alignas(BASE_ALIGN) float sum[TILE];
    double began = base_now(), summed;
    struct nn_update update = {
        .count = count,
        .gradient = sum,
        .weight_in = at(c, state, c->current, 0) + from,
        .weight_out = at(c, state, !c->current, 0) + from,
    };

    coll_space_sum(x->space, TRAIN_HEAD + from, count, sum);
    summed = base_now() - began;
    for (int slot = 0; slot < by->optimiser->slots; slot++) {
        update.slot_in[slot] = at(c, state, c->current, 1 + slot) + from;
        update.slot_out[slot] = at(c, state, !c->current, 1 + slot) + from;
    }
    if (by->hyper.lazy)
        update_lazily(by, &update, c->differ + done / BLOCK);
    else
        by->optimiser->update(&by->hyper, &update);
    return summed;
}

void train_copies_write(const struct train_copies *c, struct train_exchange *x,
                        const struct train_update *by, const struct train_state *state)
{
    size_t from, count;
    double sums = 0;

    coll_slice(state->floats, x->rank, x->size, &from, &count);
#pragma omp parallel for reduction(+ : sums)
    for (size_t done = 0; done < count; done += TILE)
        sums += update_tile(c, x, by, state, from, done, count - done < TILE ? count - done : TILE);
    train_clock_move(x->clock, TRAIN_COMMUNICATE, sums / omp_get_max_threads());
}

base_status train_copies_turn(struct train_copies *c, struct train_exchange *x,
                              struct train_state *state)
{
    base_status st = BASE_OK;
    enum train_category was = train_clock_enter(x->clock, TRAIN_WAIT);

    TRY(coll_barrier(x->coll)); /* from here on no worker reads gradients of this step */
    train_clock_enter(x->clock, was);
    c->current = !c->current;
    point(c, state);
out:
    return st;
}
