/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "nn/simd/simd.h"
#include "train/tasks/network/network.h"

base_status network_borrow(void *context, struct nn_loan *loan)
{
    struct train_session *s = context;
    struct network *n = s->work;

    train_fault_nth(&s->fault, "borrow", ++n->loans, s->team.exchange.step);
    return n->lends.borrow(s, loan);
}

/* Several pieces: their gradients are added as network_add_piece does, a group at a time. A piece
 * without samples adds nothing, not even a zero that would change a sign. */
static void network_add_lent(struct network *n, const struct nn_loan *loan)
{
    const struct nn_range *range = &n->groups[loan->group].weights;
    float *accumulated = n->accumulated + range->from;

    if (n->begins)
        memcpy(accumulated, loan->gradients, range->count * sizeof(float));
    else if (n->has > 0)
        nn_simd()->add(range->count, accumulated, loan->gradients,
                       n->ends ? loan->gradients : accumulated);
    else if (n->ends)
        memcpy(loan->gradients, accumulated, range->count * sizeof(float));
}

base_status network_give_back(void *context, const struct nn_loan *loan)
{
    base_status st = BASE_OK;
    struct train_session *s = context;
    struct network *n = s->work;

    if (loan->backward && n->lends.gradients && !(n->begins && n->ends))
        network_add_lent(n, loan);
    TRY(n->lends.give_back(s, loan, n->ends));
    if (loan->backward)
        train_fault_nth(&s->fault, "backward", ++n->ranges_ready, s->team.exchange.step);
out:
    return st;
}
