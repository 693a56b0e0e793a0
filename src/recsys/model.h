/* SPDX-License-Identifier: MIT
 *
 * Rating models. A file in recsys/models/ provides `const struct recsys_model recsys_model_NAME`;
 * a *fit* is one such model and its state, for some ratings.
 *
 * The state is named buffers of floats by rows: users x k, items x k and the like. A *sweep* goes
 * over all ratings once. It is a list of phases; the rows of a phase can be computed apart from
 * each other, in any division into ranges and on any number of threads, with the same bits. So a
 * worker that has all buffers computes a range of a phase's rows, the workers give each other those
 * rows of the buffers that the phase writes, and go on with the next phase:
 *
 *     for (int p = 0; p < fit->phase_count; p++) {
 *         TRY(recsys_prepare(fit, p));                    // the same on every worker
 *         recsys_run(fit, p, from, to);
 *         …gather the rows of fit->phases[p].writes…
 *     }
 *     TRY(recsys_finish(fit));                            // the same on every worker
 *
 * One process calls recsys_sweep, which does that for all rows. Randomness is a function of the
 * seed, the sweep and the row alone.
 */
#ifndef RECSYS_MODEL_H
#define RECSYS_MODEL_H

#include "base/option.h"
#include "base/team.h"
#include "recsys/ratings.h"

enum { RECSYS_MAX_BUFFERS = 24, RECSYS_MAX_PHASES = 8, RECSYS_MAX_WRITES = 3 };
enum { RECSYS_MAX_FACTS = 8 };

/* In place of a user or an item: one that the model does not know. */
#define RECSYS_UNKNOWN RECSYS_NO_ID

/* What the rows of a buffer are of: where users and items are added, theirs stay theirs. */
enum recsys_axis { RECSYS_NEITHER, RECSYS_OF_USERS, RECSYS_OF_ITEMS };

struct recsys_buffer {
    const char *name;     /* "users"; of a saved tensor, too */
    uint32_t rows, width; /* floats of a row */
    enum recsys_axis of;
    bool across;          /* not the rows are theirs but the columns, eight floats each */
    bool passing;         /* made anew in every sweep: no part of a saved model */
    bool late;            /* `finish` alone writes it, and no phase reads it */
    size_t offset;        /* in the flat memory of the fit, in floats; of a passing one: none */
    float *at;            /* zeros at first; … */
    uint32_t first, held; /* … the rows that it has, which may be some of all */
};

struct recsys_phase {
    const char *name;
    uint32_t rows;
    const uint64_t *work; /* (rows+1) rising: what a range of rows costs; NULL: all the same */
    int writes[RECSYS_MAX_WRITES]; /* indices of buffers with as many rows */
    int write_count;
};

/* A rating of a user who is not among those of the fit. */
struct recsys_rating {
    uint32_t item;
    float value;
    uint32_t time; /* seconds since 1970; 0: not known */
};

struct recsys_guess {
    float value;     /* on the scale of the ratings, and within it */
    float deviation; /* standard deviation of a rating around it; NAN: the model cannot tell */
};

/* Σ over ratings. */
struct recsys_score {
    double count, absolute, squared;
};

/* Where the factors of items are, which tell items that are liked by the same users: of a row of
 * the buffer, up to float `end`, the first `factors` of every `period`. */
struct recsys_traits {
    int buffer;
    uint32_t end, period, factors; /* no factors: 0 */
};

/* Of a model that is trained already and gets more ratings: it makes the sweeps from … to-1 of its
 * plan once more. */
struct recsys_again {
    int64_t from, to;
};

struct recsys_model;
struct recsys_rotation;

struct recsys_fit {
    const struct recsys_model *model;
    const void *options; /* in the model's own struct */
    const struct recsys_scale *scale;
    const struct recsys_rows *by_user, *by_item; /* by_item: of a model that reads it */
    uint64_t seed;
    struct base_team *team;
    uint32_t users, items;
    float mean;            /* of all ratings */
    uint64_t *item_counts; /* (items) ratings of each; NULL: of a saved model */

    struct recsys_buffer buffers[RECSYS_MAX_BUFFERS];
    int buffer_count;
    size_t floats;       /* of the flat memory that has all buffers but the passing ones … */
    size_t early_floats; /* … of which the late ones are the end */
    struct recsys_phase phases[RECSYS_MAX_PHASES];
    int phase_count;
    int answers; /* index of the buffer whose rows are what guesses know about a user */
    struct recsys_traits traits;
    int64_t sweep;  /* that is under way, or that comes next; from 0 */
    int64_t sweeps; /* planned: the options', or what the model thinks right for the data */
    struct recsys_again again;
    int64_t settling;   /* so many sweeps come first whose guesses are not those of the model yet */
    uint64_t extra;     /* bytes that `open` has allocated; of rotations, see there */
    const char *reason; /* why this size, where the options left it open; for a log */
    /* What guesses and folds need besides the buffers, set by `open`; `reopen` finds it there. */
    double facts[RECSYS_MAX_FACTS];
    int fact_count;
    void *own;     /* the model's */
    float *memory; /* flat, of recsys_fit_new */
};

struct recsys_model {
    const char *name, *help;
    bool implicit; /* guesses are preferences around 0 … 1, not ratings */
    /* It is trained by batches of ratings as a network, which src/train makes of it: there are
     * neither sweeps nor starting values here, nor anything of `start` … `rotation` below. */
    bool batches;
    /* What its training reads besides the ratings by user: the same by item; and, as its guesses
     * do, times. What is not read need not be there. */
    bool by_item, times;

    /* What may follow the name, "bmf:k=64,sweeps=100": a table over a struct. */
    const struct base_option *options;
    size_t options_size;
    const void *defaults;
    const char *const *examples; /* texts of options that tests run; NULL-ended */

    size_t own_size; /* of fit->own, zeros at first */
    /* The option that is 0 where the data decides, and then the first of the facts; or NULL. */
    const char *sized_by;
    /* Declares buffers and phases (recsys_add_rows, recsys_add_phase), sets `sweeps` and, if the
     * last quarter of them is not right, `again`. */
    base_status (*open)(struct recsys_fit *fit);
    void (*close)(struct recsys_fit *fit); /* accepts half-opened; or NULL */
    /* For a fit of a saved model, which has no ratings: declares the buffers that guesses and folds
     * read, by the options, the numbers of users and items and the facts, which are from a file:
     * fails where they are impossible. */
    base_status (*reopen)(struct recsys_fit *fit);
    /* Starting values. The buffers have memory now. */
    base_status (*start)(struct recsys_fit *fit);
    /* The buffers have come from a training with fewer ratings; new users and items have starting
     * values. What follows from the ratings besides is made to fit; or NULL. */
    void (*grown)(struct recsys_fit *fit);
    base_status (*prepare)(struct recsys_fit *fit, int phase); /* or NULL */
    void (*run)(struct recsys_fit *fit, int phase, uint32_t from, uint32_t to);
    base_status (*finish)(struct recsys_fit *fit); /* or NULL */
    /* How several workers share a sweep that is one phase of one row; or NULL. */
    const struct recsys_rotation *rotation;

    /* `user`: a row of the buffer `answers`, or of fold; NULL: an unknown user. */
    struct recsys_guess (*guess)(const struct recsys_fit *fit, const float *user, uint32_t item,
                                 uint32_t time);
    /* The values of guesses for items from … to-1 and time 0; NULL: `guess` is asked for each. */
    void (*scores)(const struct recsys_fit *fit, const float *user, uint32_t from, uint32_t to,
                   float *values);
    /* A row for a user of these ratings, all else being as it is. */
    base_status (*fold)(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                        uint32_t count, float *row);
    /* What each rating adds to the guess for an item, not clipped, of the user that `fold` makes of
     * them: parts (count). *rest_p: what the guess would be without them all. */
    base_status (*explain)(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                           uint32_t count, uint32_t item, float *parts, float *rest_p);
};

extern const struct recsys_model *const recsys_model_registry[];
extern const size_t recsys_model_count;

/* "NAME" or "NAME:option=value,…". *options_p: its struct, to be freed with base_free. */
base_status recsys_model_find(const char *text, const struct recsys_model **model_p,
                              void **options_p);

/* What a fit is made for. All of it must outlive the fit. */
struct recsys_setup {
    const struct recsys_model *model;
    const void *options;
    const struct recsys_scale *scale;
    const struct recsys_rows *by_user, *by_item;
    uint64_t seed;
    struct base_team *team;
};

/* With starting values. Fails without ratings, where memory lacks, and for a model that is trained
 * by batches. */
base_status recsys_fit_new(const struct recsys_setup *setup, struct recsys_fit **fit_p);
void recsys_fit_free(struct recsys_fit *fit); /* accepts NULL */

/* The same in steps, for memory that is the caller's: described without it; `floats` of it, in
 * which buffers lie at their offsets, given or taken anew (NULL: taken away); starting values into
 * that. */
base_status recsys_fit_open(const struct recsys_setup *setup, struct recsys_fit **fit_p);
void recsys_fit_place(struct recsys_fit *fit, float *memory);
/* Of one buffer, rows first … first+held-1 alone, which are at `at`. */
void recsys_fit_place_rows(struct recsys_fit *fit, int buffer, uint32_t first, uint32_t held,
                           float *at);
/* Of the rows that are there. */
base_status recsys_fit_start(struct recsys_fit *fit);

base_status recsys_prepare(struct recsys_fit *fit, int phase);
void recsys_run(struct recsys_fit *fit, int phase, uint32_t from, uint32_t to);
base_status recsys_finish(struct recsys_fit *fit);
base_status recsys_sweep(struct recsys_fit *fit); /* all phases, all rows */

/* Of known or unknown users and items. `time` matters to models with time; 0: not known. */
struct recsys_guess recsys_predict(const struct recsys_fit *fit, uint32_t user, uint32_t item,
                                   uint32_t time);
/* The same for a folded user. */
struct recsys_guess recsys_predict_row(const struct recsys_fit *fit, const float *row,
                                       uint32_t item, uint32_t time);
uint32_t recsys_row_floats(const struct recsys_fit *fit); /* of a folded user's row */
base_status recsys_fold(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                        uint32_t count, float *row);
base_status recsys_explain(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                           uint32_t count, uint32_t item, float *parts, float *rest_p);

/* Adds the errors on ratings of the same users and items, rows from … to-1. A row's are
 * rounded, by no more than sums of so many doubles are anyway, so that the sums have the same bits
 * in whatever parts rows are scored. */
base_status recsys_score(const struct recsys_fit *fit, const struct recsys_rows *by_user,
                         uint32_t from, uint32_t to, struct recsys_score *score);

#endif
