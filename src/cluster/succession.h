/* SPDX-License-Identifier: MIT
 *
 * Decides which host coordinates the job when its coordinator is lost, as a state machine of each
 * agent: what
 * other agents say and the passing of time in, messages to them and one decision out. No sockets
 * and no clock.
 *
 * An agent that has lost the coordinator looks for another one. The lowest host of the last view
 * asks first, in a new term; an agent that has lost the coordinator, too, gives one vote a term,
 * and sends its state where that is newer. With the votes of more than half of the last view's
 * hosts it leads, from the newest state among those voters. (While a newer view is not yet in use
 * by all its members, it needs more than half of the hosts of each of the two.) Hosts whose agent
 * is known to be dead do not count; silent ones do. A host that finds no majority gives up: its
 * workers save. docs/protocol.md has the reasons.
 */
#ifndef CLUSTER_SUCCESSION_H
#define CLUSTER_SUCCESSION_H

#include "cluster/state.h"

enum cluster_stage {
    CLUSTER_FOLLOWING, /* there is a coordinator, or there was none yet */
    CLUSTER_LOOKING,   /* the coordinator is lost */
    CLUSTER_LEADING,   /* this host is to coordinate, in `term`, from `state` */
    CLUSTER_GIVEN_UP,  /* this host may not coordinate and no other does: `why` */
};

struct cluster_succession {
    uint32_t self; /* index of this host */
    enum cluster_stage stage;
    struct cluster_state state; /* the newest state that this host has heard of */
    uint32_t term;              /* the highest term that this host has heard of */
    uint32_t leader;            /* FOLLOWING: the host that coordinates, in `term` */
    uint32_t voted_term, voted_for;
    double voted_at;
    /* The others may have given up this host and be done: then a port without an agent does not
     * mean that the host died. Set it before cluster_succession_begin. */
    bool stale;
    bool asking;                    /* this host asks for votes in `term` */
    double since, ask_at, round_at; /* LOOKING: its begin, the next ask, the round's begin */
    char why[256];
    struct {
        bool open;    /* connected: messages reach it */
        bool dead;    /* its kernel says that no agent is there any more */
        bool granted; /* it voted for this host in `term` */
    } hosts[CLUSTER_MAX_HOSTS];
    struct cluster_letter *first, *last;
};

void cluster_succession_init(struct cluster_succession *s); /* FOLLOWING, without a state */
void cluster_succession_fini(struct cluster_succession *s);

/* Takes the coordinator's state, the body of CLUSTER_STATE; `self` is this host. A state of an
 * older term is ignored. */
base_status cluster_succession_learn(struct cluster_succession *s, uint32_t self,
                                     const json_t *body);
/* Begins to look for another coordinator: the last one is lost. */
void cluster_succession_begin(struct cluster_succession *s, double now);

/* True if this host wants a connection with that one; the caller makes it if there is none. */
bool cluster_succession_wants(const struct cluster_succession *s, uint32_t host);
void cluster_succession_opened(struct cluster_succession *s, uint32_t host, double now);
void cluster_succession_closed(struct cluster_succession *s, uint32_t host);
/* Tells that the host itself answered that no agent listens at its port. */
void cluster_succession_dead(struct cluster_succession *s, uint32_t host, double now);

/* Hears ASK, VOTE or LEAD of that host's agent. After an accepted LEAD the stage is FOLLOWING, with
 * the new `leader` and `term`. */
base_status cluster_succession_hear(struct cluster_succession *s, uint32_t host,
                                    const struct cluster_message *message, double now);
/* Call it a few times a second. */
void cluster_succession_tick(struct cluster_succession *s, double now);

/* Takes the next message to send; false: there is none. `answer`: send it over the connection by
 * which that host's last message came, else over the one that this host has opened. */
bool cluster_succession_next(struct cluster_succession *s, uint32_t *host_p, bool *answer_p,
                             struct cluster_message *message_p);

#endif
