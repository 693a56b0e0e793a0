/* SPDX-License-Identifier: MIT
 *
 * The robust all-reduce in parts: robust.c has the order of a step, robust_talk.c the messages,
 * robust_check.c digests, echoes and checks.
 */
#ifndef TRAIN_ROBUST_PRIVATE_H
#define TRAIN_ROBUST_PRIVATE_H

#include "train/robust.h"

enum robust_round {
    ROBUST_PROMISE,
    ROBUST_ROWS,
    ROBUST_PARTS,
    ROBUST_RESULTS,
    ROBUST_ECHO,
    ROBUST_CHECK,
    ROBUST_VERDICT,
    ROBUST_SHOW,
    ROBUST_ROUNDS
};

struct robust_range {
    size_t from, count;
};

struct robust_range robust_slice(const struct train_robust *r, int rank);
/* Block `block` of the slice of `rank`. */
struct robust_range robust_block(const struct train_robust *r, int rank, int block);
/* Doubles that an owner tells of a block: the distances of all pairs of rows and their squares. */
size_t robust_pairs(const struct train_robust *r);

/* Of rows (count) with `floats` values each. */
void robust_part(const struct train_robust *r, const struct train_row *rows, size_t floats,
                 double *part);
/* Values that are not finite become zeros. */
void robust_make_finite(float *x, size_t floats);

/* ---- robust_talk.c ---- */

/* What goes to another worker and what comes from it. */
struct robust_mail {
    const void *out;
    void *in;
    size_t out_bytes, in_bytes;
};

/* `mail` (size) by rank. Fails where a worker sends another number of bytes. */
base_status robust_talk(struct train_robust *r, enum robust_round round,
                        const struct robust_mail *mail);
/* The same bytes to all; what comes from rank p goes to all[p]. This worker's are there already. */
base_status robust_tell_all(struct train_robust *r, enum robust_round round, void *all,
                            size_t bytes);

/* ---- robust_check.c ---- */

size_t robust_promise_bytes(int size);
size_t robust_echo_bytes(int size);

/* The first finding of a step counts. */
void robust_blame(struct train_robust *r, int rank, const char *why);
/* Tells the digests of this worker's vector, and hears those of the others. */
base_status robust_promise(struct train_robust *r, const float *head);
/* Are these the values of a block that the worker of that rank promised? */
bool robust_is_promised(const struct train_robust *r, int rank, int owner, int block,
                        const float *values);
/* What this worker has heard of the one of that rank, by what the others say of it. The word of
 * that one itself does not count: it may tell each worker that all have heard the same. As less
 * than half are hostile, half of the others at least have heard the same of an honest worker. */
enum robust_words {
    ROBUST_ALIKE,   /* most have heard the same as this one */
    ROBUST_UNCLEAR, /* as many as have not: it is wrong, or half of the others are */
    ROBUST_UNLIKE,  /* it has told workers different things */
};
enum robust_words robust_judge_words(const struct train_robust *r, int rank);
/* Compares what all have heard of each other. *seed_p: of all secret numbers. */
base_status robust_echo(struct train_robust *r, uint64_t *seed_p);
/* Checks a block of each slice. */
base_status robust_check(struct train_robust *r, uint64_t seed);

#endif
