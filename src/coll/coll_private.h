/* SPDX-License-Identifier: MIT
 *
 * What the files of coll/ share: the insides of a `struct coll`, and the parts algorithms are made
 * of. A file of coll/algos says who talks to whom; the moving of bytes is in
 *   flow.c    messages of at most COLL_CHUNK, a few under way, to or from one peer
 *   ring.c, direct.c, star.c, relay.c    the patterns of such messages
 *   local.c   memory that the ranks of one host share, half by half
 * Ranks are those of the `struct coll` everywhere; flow.c alone knows what they are in the group.
 */
#ifndef COLL_COLL_PRIVATE_H
#define COLL_COLL_PRIVATE_H

#include <stdio.h>

#include "coll/algorithm.h"
#include "coll/kernels.h"
#include "comm/barrier.h"
#include "comm/engine.h"

enum {
    COLL_CHUNK =
        256 << 10,   /* bytes of a message: small enough to stream, large enough to be cheap */
    COLL_WINDOW = 4, /* messages under way to or from a peer */
    COLL_UNIT = 64,  /* bytes: a cache line; no two ranks write to the same one */
};

/* The ranks that take part, in the order of their sums. */
struct coll_team {
    int size, me; /* me: index of this rank, -1: is not of it */
    int rank[COMM_MAX_WORKERS];
};

/* One part of a buffer for each member of a team, in bytes. */
struct coll_blocks {
    uint8_t *base;
    size_t offset[COMM_MAX_WORKERS], bytes[COMM_MAX_WORKERS];
};

/* Measured when the group was opened, the same numbers on every rank. Seconds. */
struct coll_cost {
    double round;   /* until a message is there that a rank waits for */
    double message; /* of a rank's time for each, however short */
    double byte;    /* added by each, while all ranks send to their neighbours */
    double barrier; /* of the ranks of a host */
};

/* Many senders at one receiver: what it costs more than a ring's one (1.05 at 1 Gbit/s). */
#define COLL_CROWD 1.05

struct coll_async;
struct coll_local;

struct coll {
    struct comm_group *group;
    struct coll *whole;               /* itself, or what it is a part of */
    int group_rank[COMM_MAX_WORKERS]; /* of each of its ranks */
    uint32_t number;                  /* of a part, from 1 (coll/part.c) */
    uint32_t mark;                    /* the bits of all its tags that tell parts apart */
    uint64_t numbers;                 /* of the whole: bits, those of this rank's parts and 0 */
    uint64_t digest;                  /* of a part's key and ranks */
    char prefix[24];                  /* of its keys of shared memory; "" for the whole */
    struct comm_barrier barrier;      /* a part's locals */
    struct coll_team world;
    struct coll_team locals;  /* ranks that share memory with this one, itself included */
    struct coll_team leaders; /* the first of the locals of every host */
    const struct coll_algorithm *forced[COLL_KINDS]; /* NULL: auto */
    const struct coll_algorithm **fit[COLL_KINDS];   /* NULL-ended: those that serve this group */
    struct coll_cost cost;
    bool crowded; /* some host has more ranks than cores: they take turns */
    size_t small; /* bytes up to which every rank sums everything by itself */
    size_t cache; /* bytes of the last level */
    double patience;
    uint32_t sequence;        /* of the operations, the same on every rank */
    struct coll_flow *flows;  /* two a rank, for the algorithm that runs */
    uint8_t *stage;           /* chunks: two a peer and COLL_WINDOW, 2 * COLL_WINDOW at least */
    struct coll_local *local; /* NULL: shares memory with no other rank */
    struct coll_space *spaces;
    struct coll_async *async; /* NULL: nothing was started yet */
};

bool coll_shares(const struct coll *c); /* all ranks share memory */

struct coll *coll_new(struct comm_group *group, int size, int me);
/* Collective: teams, memory, costs, algorithms. */
base_status coll_connect(struct coll *c, const char *forced);
const struct comm_member *coll_member(const struct coll *c, int rank);
/* The tag and the deadline of an operation that begins now; fails where the group has ended. */
base_status coll_begin(struct coll *c, struct coll_call *call);
/* Runs one operation with the algorithm that is forced or estimated best. */
base_status coll_run(struct coll *c, struct coll_call *call);
static inline size_t coll_least(size_t a, size_t b)
{
    return a < b ? a : b;
}
double coll_deadline(const struct coll *c); /* of what begins now */
/* The scale of a rank in a sum, 1 without. */
float coll_scale_of(const struct coll_call *call, int rank);

/* ---- async.c */

/* Performs what waits for other ranks: on the group's engine if it has one, else here. */
base_status coll_perform(struct coll *c, comm_order *operation, void *context);
void coll_async_close(struct coll *c);

/* A checked call of an all-reduce in a space. */
base_status coll_space_call(struct coll_space *space, size_t offset, size_t count,
                            const struct coll_sum *sum, struct coll_call *call_p);

/* ---- owned.c; call->x is the range */

struct coll_keepers {
    struct coll_owned range;
    float *kept[COMM_MAX_WORKERS]; /* memory of slice rank - i, `copies` of them; gather: kept[0] */
};

base_status coll_reduce_owned(struct coll *c, struct coll_call *call, const struct coll_keepers *k);
base_status coll_gather_owned(struct coll *c, struct coll_call *call, const struct coll_keepers *k);

/* ---- order.c */

/* y = the sum of x[0 … size) in that order, `slice` being the one of RING; HOSTS is none that one
 * rank makes. Of OTHER the sum in the order of ranks. y may be among x. */
void coll_sum_in_order(enum coll_order order, int size, int slice, size_t count,
                       const float *const *x, float *y);

/* ---- part.c */

/* Kind of operation, mark, the last bits of the sequence. What belongs to opening has COLL_KINDS
 * for a kind. */
uint32_t coll_tag(const struct coll *c, int kind, uint32_t sequence);
/* The part gets the first number that is not among those that its ranks use. */
base_status coll_part_number(struct coll *c, uint64_t used);
void coll_part_forget(struct coll *c);

/* ---- choose.c */

base_status coll_choose_open(struct coll *c, const char *forced);
void coll_choose_close(struct coll *c);
const struct coll_algorithm *coll_choose(const struct coll *c, const struct coll_call *call);

/* ---- cost.c; the first three are collective */

base_status coll_find_teams(struct coll *c);
base_status coll_cost_measure(struct coll *c);
/* Bytes a second from every rank to the next. */
base_status coll_cost_link(struct coll *c, double *rate_p);
/* Of algorithms: why they do not serve (NULL: they do). */
const char *coll_unfit_apart(const struct coll *c); /* not all ranks share memory */
const char *coll_unfit_flat(const struct coll *c);  /* not several hosts with workers that share */
const char *coll_unfit_foreign(const struct coll *c); /* the transport has no collectives */

/* For estimates. */
double coll_log2(int n);                                                  /* rounded up */
double coll_bytes_of(const struct coll *c, const struct coll_call *call); /* of all blocks */
/* Seconds of barriers, and of bytes that the busiest rank reads and writes. */
double coll_local_cost(const struct coll *c, double barriers, double bytes);
/* A gather or scatter of so many bytes in all is faster by messages than by shared memory. */
bool coll_mail_is_faster(const struct coll *c, double bytes);
/* Seconds of rounds that wait for each other, of a rank's messages, of bytes through one link. */
double coll_cost_of(const struct coll *c, double rounds, double messages, double bytes);

/* ---- flow.c: a run of messages to or from one peer */

struct coll_flow {
    int peer;
    bool sends;
    unsigned posted, done;
    struct comm_request requests[COLL_WINDOW];
};

void coll_flow_init(struct coll_flow *flow, int peer, bool sends);
bool coll_flow_room(const struct coll_flow *flow);
void coll_flow_post(struct coll *c, const struct coll_call *call, struct coll_flow *flow,
                    void *bytes, size_t count); /* there is room */
bool coll_flow_reap(struct coll_flow *flow);    /* one more is done; in order */
/* Until one of them can be reaped. */
base_status coll_flow_wait(struct coll *c, const struct coll_call *call,
                           const struct coll_flow *flows, int count);
/* Whole buffers through as many flows. */
base_status coll_flow_move(struct coll *c, const struct coll_call *call, struct coll_flow *flows,
                           void *const *bytes, const size_t *counts, int count);

size_t coll_chunks(size_t bytes); /* messages that many bytes are */

/* A message of `bytes` travels as it is or, with bf16, packed into half of that, by way of a slot:
 * COLL_CHUNK bytes of the stage. */

/* The slot of message `index`, for an algorithm that has one flow out and one in. */
void *coll_flow_slot(const struct coll *c, const struct coll_flow *flow, unsigned index);
/* Packed floats go out of the slot, which may be the memory of `from`. */
void coll_flow_send(struct coll *c, const struct coll_call *call, struct coll_flow *flow,
                    bool packed, size_t bytes, void *from, void *slot);
/* Packed floats come into the upper half of the slot, and coll_flow_unpack takes them from there;
 * `to` may be the slot itself. */
void coll_flow_receive(struct coll *c, const struct coll_call *call, struct coll_flow *flow,
                       bool packed, size_t bytes, void *to, void *slot);
void coll_flow_unpack(size_t bytes, void *to, const void *slot);

/* ---- patterns */

enum coll_phase { COLL_PHASE_REDUCE = 1, COLL_PHASE_GATHER = 2 };

/* What an operation is made of; only of the kinds that are called after the phases. */
unsigned coll_phases_of(enum coll_kind kind);
/* The blocks of a call: slices of x, or `count` bytes a rank at `out`. */
void coll_blocks_of(const struct coll_call *call, const struct coll_team *team,
                    struct coll_blocks *blocks_p);

/* REDUCE: afterwards every member's own block holds the sum, starting with the next member's, in
 * order around the ring, its own last. GATHER: every member's own block goes to all. */
base_status coll_ring(struct coll *c, const struct coll_call *call, const struct coll_team *team,
                      const struct coll_blocks *blocks, unsigned phases);
/* The same with every member talking to every other; sums in the order of the team, or
 * call->order. */
base_status coll_direct(struct coll *c, const struct coll_call *call, const struct coll_team *team,
                        const struct coll_blocks *blocks, unsigned phases);
/* Algorithms that are a pattern among all ranks and nothing else. */
double coll_ring_estimate(const struct coll *c, const struct coll_call *call);
base_status coll_ring_run(struct coll *c, struct coll_call *call);
double coll_direct_estimate(const struct coll *c, const struct coll_call *call);
base_status coll_direct_run(struct coll *c, struct coll_call *call);
double coll_star_estimate(const struct coll *c, const struct coll_call *call);
double coll_star_shm_estimate(const struct coll *c, const struct coll_call *call); /* by shm */
base_status coll_star_run(struct coll *c, struct coll_call *call);
/* Bytes that come from `parent` (-1: they are here) go on to `children`. */
base_status coll_relay(struct coll *c, const struct coll_call *call, int parent,
                       const int *children, int count, void *bytes, size_t total);
/* The index of a rank in the team; -1: it is not of it. */
int coll_team_find(const struct coll_team *team, int rank);

/* ---- local.c: ranks of one host; all of them call, with the same counts */

base_status coll_local_open(struct coll *c);
void coll_local_close(struct coll_local *local); /* accepts NULL */
size_t coll_local_half(void); /* bytes of the half of a member's staging memory */
/* Bytes to copy at a time: short buffers in pieces that one rank reads while the next is written,
 * long ones in whole halves, which have gone on to the shared cache when they are read. */
size_t coll_local_piece(const struct coll *c, size_t bytes);
/* The next half to write to. What was written is seen by all after coll_local_meet, and may be
 * read until the next coll_local_meet. */
uint8_t *coll_local_next(struct coll *c, int member);
uint8_t *coll_local_seen(struct coll *c, int member);
base_status coll_local_barrier(struct coll *c, double deadline);
/* A barrier that also tells whether all are in the same call. */
base_status coll_local_meet(struct coll *c, const struct coll_call *call);
/* Bytes of member `from` to all. */
base_status coll_local_broadcast(struct coll *c, const struct coll_call *call, int from,
                                 void *bytes, size_t count);
/* Σ scale·sources in rank order, sources[i] of member i. */
void coll_local_sum(struct coll *c, const struct coll_call *call, const float *const *sources,
                    size_t count, int outs, float *const *y, bool stream);
/* x = Σ scale·x of the locals' x; with `to_all` all of them get it, else the leader alone. */
base_status coll_local_reduce(struct coll *c, const struct coll_call *call, bool to_all);

/* ---- space.c */

struct coll_space {
    struct coll_space *next; /* of the same struct coll */
    struct coll *coll;
    struct comm_shared shared;
    float *memory; /* private, where nothing is shared */
    size_t floats, stride;
};

float *coll_space_result(struct coll_space *space);
/* The shared space whose own buffer holds x[0 … count), or NULL. */
struct coll_space *coll_space_find(struct coll *c, const float *x, size_t count, size_t *offset_p);
/* Sources of a sum of [offset …) of every local, in rank order. */
void coll_space_sources(struct coll_space *space, size_t offset, const float **sources);

#endif
