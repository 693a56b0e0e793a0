/* SPDX-License-Identifier: MIT */
#include "sim/post.h"

#include <math.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sim/network.h"
#include "sim/world.h"

void sim_mail(struct sim_pipe *pipe, const struct cluster_message *message)
{
    struct sim_letter *letter, **at = &pipe->to->first;
    double start = fmax(base_now(), sim_network_cut_until(pipe->from_host, pipe->to_host));

    if (pipe->closed)
        return;
    letter = base_calloc(1, sizeof *letter);
    letter->from = pipe->from;
    letter->line = pipe->line;
    letter->arrives =
        fmax(pipe->last, start + sim_network_delay(pipe->from_host, pipe->to_host, 0));
    pipe->last = letter->arrives;
    if (message != NULL) {
        letter->message = *message;
        json_incref(letter->message.body);
    } else {
        letter->closed = pipe->closed = true;
    }
    while (*at != NULL && (*at)->arrives <= letter->arrives)
        at = &(*at)->next;
    letter->next = *at;
    *at = letter;
    base_world->wake(pipe->to);
}

void sim_hang_up(struct sim_pipe *pipe)
{
    struct sim_letter *closing, **at = &pipe->to->first;

    if (pipe->broken)
        return;
    pipe->closed = pipe->broken = true;
    while (*at != NULL) {
        struct sim_letter *letter = *at;

        if (letter->line == pipe->line && letter->from == pipe->from) {
            *at = letter->next;
            sim_letter_free(letter);
        } else {
            at = &letter->next;
        }
    }
    closing = base_calloc(1, sizeof *closing);
    *closing = (struct sim_letter){.next = pipe->to->first,
                                   .arrives = base_now(),
                                   .from = pipe->from,
                                   .line = pipe->line,
                                   .closed = true};
    pipe->to->first = closing;
    base_world->wake(pipe->to);
}

struct sim_letter *sim_box_take(struct sim_box *box)
{
    struct sim_letter *letter = box->first;

    if (letter == NULL || letter->arrives > base_now())
        return NULL;
    box->first = letter->next;
    if (!letter->closed && letter->message.type != CLUSTER_HEARTBEAT)
        sim_trace("hears %s", cluster_type_name(letter->message.type));
    return letter;
}

void sim_letter_free(struct sim_letter *letter)
{
    cluster_message_fini(&letter->message);
    base_free(letter);
}

void sim_box_wait(struct sim_box *box, double deadline)
{
    double until = box->first != NULL ? fmin(box->first->arrives, deadline) : deadline;

    if (until > base_now())
        base_world->wait(box, until);
}
