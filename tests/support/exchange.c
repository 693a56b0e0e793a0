/* SPDX-License-Identifier: MIT */
#include "support/exchange.h"

#include "base/mem.h"
#include "support/crew.h"

const size_t exchange_sizes[EXCHANGE_SIZES] = {
    0,     1,     15,     16,     17,     1000,    4096,    65536,
    65537, 99999, 262128, 262144, 262145, 1 << 20, 3000001, EXCHANGE_MOST};

static void fill(uint8_t *bytes, size_t count, int from, int to, int channel)
{
    uint32_t x = (uint32_t)(from * 64 + to * 8 + channel) * 2654435761U + (uint32_t)count;

    for (size_t i = 0; i < count; i++, x = x * 1664525U + 1013904223U)
        bytes[i] = (uint8_t)(x >> 24);
}

static bool is_filled(const uint8_t *bytes, size_t count, int from, int to, int channel)
{
    uint32_t x = (uint32_t)(from * 64 + to * 8 + channel) * 2654435761U + (uint32_t)count;
    bool same = true;

    for (size_t i = 0; i < count; i++, x = x * 1664525U + 1013904223U)
        same &= bytes[i] == (uint8_t)(x >> 24);
    return same;
}

void exchange_begin(struct exchange *x)
{
    int me = comm_group_rank(x->group), size = comm_group_size(x->group);

    x->begun = 0;
    for (int receives = 0; receives < 2; receives++) {
        for (int peer = 0; peer < size; peer++) {
            for (int c = x->first; peer != me && c < x->first + x->channels; c++) {
                struct comm_request *r = &x->requests[x->begun];
                uint8_t **bytes = receives ? &x->in[peer][c] : &x->out[peer][c];

                *bytes = base_calloc(x->count + 1, 1);
                x->all[x->begun++] = r;
                if (receives) {
                    comm_receive(x->group, peer, (enum comm_channel)c, 7, *bytes, x->count, r);
                } else {
                    fill(*bytes, x->count, me, peer, c);
                    comm_send(x->group, peer, (enum comm_channel)c, 7, *bytes, x->count, r);
                }
            }
        }
    }
}

void exchange_end(struct exchange *x, bool well)
{
    int me = comm_group_rank(x->group), size = comm_group_size(x->group);

    for (int peer = 0; peer < size; peer++) {
        for (int c = x->first; peer != me && c < x->first + x->channels; c++) {
            crew_check(!well || is_filled(x->in[peer][c], x->count, peer, me, c));
            crew_check(x->in[peer][c][x->count] == 0);
            base_free(x->in[peer][c]);
            base_free(x->out[peer][c]);
        }
    }
}

base_status exchange_run(struct comm_group *group, int first, int channels, size_t count,
                         double deadline)
{
    struct exchange x = {.group = group, .first = first, .channels = channels, .count = count};
    base_status st;

    exchange_begin(&x);
    st = comm_wait(group, x.all, x.begun, deadline);
    exchange_end(&x, st == BASE_OK);
    return st;
}
