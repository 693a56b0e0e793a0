/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "train/robust_private.h"

static const double PATIENCE = 600; /* seconds; the others are there, but may be slow */

struct messages {
    struct comm_request requests[2 * COMM_MAX_WORKERS], *list[2 * COMM_MAX_WORKERS];
    int count;
};

static struct comm_request *next_request(struct messages *all)
{
    struct comm_request *request = all->list[all->count] = &all->requests[all->count];

    all->count++;
    return request;
}

base_status robust_talk(struct train_robust *r, enum robust_round round,
                        const struct robust_mail *mail)
{
    base_status st = BASE_OK;
    struct comm_group *group = r->setup.team->group;
    const uint32_t tag = (uint32_t)r->step * ROBUST_ROUNDS + round;
    struct comm_request *came[COMM_MAX_WORKERS];
    struct messages all = {.count = 0};

    for (int p = 0; p < r->size; p++)
        if (p != r->rank)
            comm_receive_any(group, p, COMM_CALLS, mail[p].in, mail[p].in_bytes,
                             came[p] = next_request(&all));
    for (int i = 1; i < r->size; i++) { /* not all to the same worker at once */
        const int p = (r->rank + i) % r->size;

        comm_send(group, p, COMM_CALLS, tag, mail[p].out, mail[p].out_bytes, next_request(&all));
    }
    TRY(comm_wait(group, all.list, all.count, base_now() + PATIENCE));
    for (int p = 0; p < r->size; p++)
        if (p != r->rank && (came[p]->tag != tag || came[p]->count != mail[p].in_bytes))
            TRY(base_fail(BASE_ERR_DATA,
                          "worker %u sent %zu bytes under tag %u where %zu under tag %u were "
                          "expected: it is wrong, or another worker has told the two different "
                          "things",
                          r->setup.team->view.members[p].id, came[p]->count, came[p]->tag,
                          mail[p].in_bytes, tag));
out:
    return st;
}

base_status robust_tell_all(struct train_robust *r, enum robust_round round, void *all,
                            size_t bytes)
{
    struct robust_mail mail[COMM_MAX_WORKERS];
    uint8_t *at = all;

    for (int p = 0; p < r->size; p++)
        mail[p] = (struct robust_mail){.out = at + (size_t)r->rank * bytes,
                                       .in = at + (size_t)p * bytes,
                                       .out_bytes = bytes,
                                       .in_bytes = bytes};
    return robust_talk(r, round, mail);
}
