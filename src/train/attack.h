/* SPDX-License-Identifier: MIT
 *
 * What a file in train/attacks/ provides: `const struct train_attack train_attack_NAME`, a way in
 * which a worker is dishonest or slow on purpose, so that defences can be measured. It does one of
 * these:
 *
 *   forge   another update in place of the worker's. The manager puts it in, before it aggregates,
 *           because it sees what all workers have sent: the attacker knows every honest update,
 *           which is the worst case, and attackers act together. Without a manager the worker
 *           forges by itself, if its own update is all that the forgery needs (`alone`).
 *   taint   the worker trains on other labels, or images, than its samples have.
 *   delay   the worker sleeps.
 *   lie     the worker returns another slice of the result where workers aggregate without a
 *           manager (train/robust.h), breaks its promises there, or accuses others.
 *
 * An attack depends on its arguments alone, so that a run can be repeated. Workers are named by
 * their ids, which they keep for life.
 */
#ifndef TRAIN_ATTACK_H
#define TRAIN_ATTACK_H

#include "comm/view.h"
#include "data/loader.h"
#include "train/aggregator.h"

/* An update that is to be forged. */
struct train_forgery {
    const struct train_row *rows; /* as the workers have sent them */
    int count, row;               /* of all; whose update is forged */
    const bool *hostile;          /* (count) a row whose worker forges its updates, too */
    int honest;                   /* rows that are not hostile */
    size_t floats;
    double strength;
    uint64_t seed; /* of this update */
};

/* A batch of the worker's that is to be changed. */
struct train_taint {
    const struct data_info *info;
    uint32_t count;
    const uint32_t *ids; /* (count) */
    double strength;
    float *x;        /* (count,C,H,W), normalised; of attacks on images alone */
    int32_t *labels; /* (count) */
};

/* A step that is done. */
struct train_pause {
    double seconds; /* that it took */
    int64_t step;   /* its number among the worker's */
    bool first;     /* of its block */
};

struct train_attack {
    const char *name, *help;
    const char *unit;      /* what its strength is; NULL: it has none */
    double strength, most; /* the usual one, and the largest */

    /* y (floats). Called only where a row is honest, or with the worker's own row only. */
    bool alone;
    void (*forge)(const struct train_forgery *forgery, float *y);
    void (*taint)(const struct train_taint *taint);
    bool images; /* taint is of images, and changes them */
    /* Of a taint that is a backdoor: the mark, and the class that images with it are given. */
    const char *trigger;
    int32_t target;
    /* Seconds to sleep. */
    double (*delay)(double strength, const struct train_pause *pause);
    /* Of a worker that owns a slice: makes its result y (floats) another one. */
    void (*lie)(double strength, uint64_t seed, size_t floats, float *y);
    bool breaks_promises; /* it sends others than the values that it has promised … */
    bool misleads;        /* … or does so to those alone who check a block … */
    bool accuses;         /* … or says that right results are wrong */
};

extern const struct train_attack *const train_attack_registry[];
extern const size_t train_attack_count;

/* The workers that attack, and how. */
struct train_attackers { /* zeros: none */
    int count;
    struct train_attacker {
        uint32_t worker; /* its id */
        const struct train_attack *attack;
        double strength;
    } of[COMM_MAX_WORKERS];

    /* Of this worker. */
    const struct train_attacker *own; /* what it does; NULL: it is honest */
    int32_t *labels;                  /* of a batch that is tainted, … */
    float *x;                         /* … and its images, … */
    uint32_t room;                    /* … of up to so many samples */
};

/* "WORKER:KIND[=STRENGTH],…"; NULL: none. `own`: the id of this worker. */
base_status train_attackers_parse(const char *text, uint32_t own,
                                  struct train_attackers *attackers_p);
void train_attackers_fini(struct train_attackers *attackers); /* accepts zeros */
/* What the worker of that id does; NULL: it is honest. */
const struct train_attacker *train_attackers_find(const struct train_attackers *attackers,
                                                  uint32_t worker);
/* One of them that leaves a backdoor; NULL: none does. */
const struct train_attack *train_attackers_backdoor(const struct train_attackers *attackers);
/* An error where one of them cannot attack what is trained on such data. */
base_status train_attackers_check(const struct train_attackers *attackers,
                                  const struct data_info *info);
/* One line for the log: "worker 3 sign-flip, worker 7 alie"; base_free. */
char *train_attackers_text(const struct train_attackers *attackers);

/* Tells the log which workers of the view attack, so that no reader takes the run for an honest
 * one.
 */
void train_attackers_say(const struct train_attackers *attackers, const struct comm_view *view);

/* The updates of workers that forge become others; *forged_p has the memory of these, base_free.
 * `step` makes those of every round differ. */
base_status train_attackers_forge(const struct train_attackers *attackers, struct train_row *rows,
                                  int count, size_t floats, uint64_t seed, int64_t step,
                                  float **forged_p);

/* Can the attack do without a manager, that is, in a worker of `ddp`? With a rule of --aggregate
 * (`defended`) or without. */
bool train_attack_is_own(const struct train_attack *attack, bool defended);
/* Without a manager: this worker's update x becomes another one, if it forges. */
base_status train_attackers_forge_own(const struct train_attackers *attackers, uint64_t seed,
                                      int64_t step, size_t floats, float *x);

/* A batch becomes what this worker makes of it, valid until the next call. */
base_status train_attackers_taint(struct train_attackers *attackers, const struct data_info *info,
                                  struct data_batch *batch);
/* This worker has made a step of a block: sleeps if it is to be slow. */
void train_attackers_delay(const struct train_attackers *attackers,
                           const struct train_pause *pause);

/* For `forge`: y is the mean of the honest rows. */
void train_forgery_mean(const struct train_forgery *forgery, float *y);

#endif
