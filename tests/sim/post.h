/* SPDX-License-Identifier: MIT
 *
 * Letter boxes of simulated processes: control messages with a moment of arrival. What one sender
 * says arrives in order.
 */
#ifndef SIM_POST_H
#define SIM_POST_H

#include "cluster/message.h"

struct sim_letter {
    struct sim_letter *next;
    double arrives;
    int from;    /* the sender, a number of the receiver's choice … */
    void *line;  /* … or a connection, whose end `from` it came to; NULL: no such */
    bool closed; /* the connection ended; there is no message */
    struct cluster_message message;
};

struct sim_box {
    struct sim_letter *first; /* by arrival */
};

/* One direction of a connection. */
struct sim_pipe {
    struct sim_box *to;
    void *line;
    int from, from_host, to_host;
    double last; /* arrival */
    bool closed, broken;
};

/* `message` NULL: closes the pipe. Nothing goes through a closed one. */
void sim_mail(struct sim_pipe *pipe, const struct cluster_message *message);
/* The pipe breaks: its receiver finds it closed at once, and what was under way is lost. */
void sim_hang_up(struct sim_pipe *pipe);
/* The next letter that has arrived, the caller's; NULL: none. */
struct sim_letter *sim_box_take(struct sim_box *box);
void sim_letter_free(struct sim_letter *letter);
/* Waits until a letter has arrived, or until base_now() is `deadline`. */
void sim_box_wait(struct sim_box *box, double deadline);

#endif
