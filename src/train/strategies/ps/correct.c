/* SPDX-License-Identifier: MIT
 *
 * Delay compensation (Zheng et al., ICML 2017): a gradient g that was computed at weights w_read
 * and comes in when the weights are w_now becomes
 *
 *     g + lambda * g * g * (w_now - w_read)      element by element
 *
 * where g * g stands for the diagonal of the loss's second derivative. A server needs w_read for
 * that: it keeps a copy of its slices for every worker, as the worker was told to read them. Both
 * servers of a slice must have the same copies, so the log says when they are made: an entry names
 * the workers that were given a block after the entry before it. A server copies its slices for
 * these before it applies the entry, and serves them that version and no later one.
 */
#include <string.h>

#include "base/mem.h"
#include "train/strategies/ps/server_private.h"

base_status ps_server_correct(struct ps_server *v, double lambda)
{
    base_status st = BASE_OK;

    v->lambda = (float)lambda;
    for (int i = v->sequencer.first_worker; i < v->size; i++)
        TRY(base_tensor(ps_server_floats(v), sizeof(float), "weights that workers have read",
                        &v->copies[i].weights));
    v->corrects = true;
out:
    return st;
}

void ps_server_grant_read(struct ps_server *v, int rank)
{
    if (v->corrects)
        v->readers |= UINT64_C(1) << rank;
}

uint64_t ps_server_take_readers(struct ps_server *v)
{
    uint64_t readers = v->readers;

    v->readers = 0;
    return readers;
}

static void copy_slices(struct ps_server *v, int rank)
{
    float *to = v->copies[rank].weights;

    for (int i = 0; i < v->slice_count; i++) {
        memcpy(to, v->slices[i].weights, v->slices[i].count * sizeof *to);
        to += v->slices[i].count;
    }
    v->copies[rank].number = v->applied;
    v->copies[rank].made = true;
}

static void correct_push(struct ps_server *v, int rank)
{
    float *gradients = v->pushes[rank];
    const float *read = v->copies[rank].weights;

    if (!v->copies[rank].made)
        return;
    for (int i = 0; i < v->slice_count; i++) {
        const struct train_slice *slice = &v->slices[i];

        for (size_t j = 0; j < slice->count; j++)
            gradients[j] += v->lambda * gradients[j] * gradients[j] * (slice->weights[j] - read[j]);
        gradients += slice->count;
        read += slice->count;
    }
}

void ps_server_correct_entry(struct ps_server *v, const struct train_log_entry *e)
{
    if (!v->corrects)
        return;
    for (int rank = v->sequencer.first_worker; rank < v->size; rank++)
        if ((e->readers >> rank & 1) != 0)
            copy_slices(v, rank);
    for (int i = 0; i < e->count; i++)
        correct_push(v, e->of[i].rank);
}

const float *ps_server_weights_for(const struct ps_server *v, int rank, uint64_t number,
                                   uint64_t *number_p)
{
    bool copied = v->copies[rank].made && v->copies[rank].number == number;

    *number_p = copied ? number : v->applied;
    return copied ? v->copies[rank].weights : v->slices[0].weights;
}

void ps_server_forget_copies(struct ps_server *v)
{
    for (int i = 0; i < v->size; i++)
        base_free(v->copies[i].weights);
}
