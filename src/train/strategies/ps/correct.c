/* SPDX-License-Identifier: MIT
 *
 * Delay compensation (Zheng et al., ICML 2017): a gradient g that was computed at weights w_read
 * and comes in when the weights are w_now becomes
 *
 *     g + lambda * g * g / sqrt(m) * (w_now - w_read)      element by element
 *
 * where g * g stands for the diagonal of the loss's second derivative, and m is a running mean of
 * g * g (the paper's adaptive form: one lambda serves gradients of any size). It begins anew with
 * every leg. A server needs w_read for that: it keeps a copy of its slices for every worker, as the
 * worker was told to read them. Both servers of a slice must have the same copies, so the log says
 * when they are made: an entry names the workers that were given a block after the entry before it.
 * A server copies its slices for these before it applies the entry, and serves them that version
 * and no later one.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "train/strategies/ps/server_private.h"

static const float DECAY = 0.95f, EPSILON = 1e-7f; /* of the running mean, as in the paper */

base_status ps_server_correct(struct ps_server *v, double lambda)
{
    base_status st = BASE_OK;

    v->lambda = (float)lambda;
    TRY(base_tensor(ps_server_floats(v), sizeof(float), "mean squares", &v->mean_squares));
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

/* decay: what the mean squares keep; 0 at the first push, with which they begin. */
static void correct(size_t count, float lambda, float decay, const float *now, const float *read,
                    float *mean_squares, float *gradients)
{
    for (size_t i = 0; i < count; i++) {
        float square = gradients[i] * gradients[i];

        mean_squares[i] = decay * mean_squares[i] + (1 - decay) * square;
        gradients[i] += lambda * square / sqrtf(mean_squares[i] + EPSILON) * (now[i] - read[i]);
    }
}

static void correct_push(struct ps_server *v, int rank)
{
    size_t at = 0;

    if (!v->copies[rank].made)
        return;
    for (int i = 0; i < v->slice_count; i++) {
        const struct train_slice *slice = &v->slices[i];

        correct(slice->count, v->lambda, v->corrected ? DECAY : 0, slice->weights,
                v->copies[rank].weights + at, v->mean_squares + at, v->pushes[rank] + at);
        at += slice->count;
    }
    v->corrected = true;
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
    base_free(v->mean_squares);
}
