/* SPDX-License-Identifier: MIT
 *
 * Bayesian matrix factorisation by blocked Gibbs sampling (Salakhutdinov and Mnih 2008), with
 * biases inside the rows. Private to recsys/models/bmf.c and the files gibbs_*.c.
 *
 *   user row (p, b_u, 1)    item row (q, 1, b_i)    row of a time bin (d, 0, b_t)
 *   rating ~ mean + b_u + b_i + <p,q> [+ b_t + <p,d> + <q,d>], noise of precision alpha * noise_u
 *   row ~ N(mu + effect, Lambda⁻¹), (mu, Lambda) ~ Normal-Wishart, for each side
 *   effect of a user = Σ y_j / sqrt(n) over the items it rated, y_j ~ N(0, (spread Lambda)⁻¹);
 *   effect of an item = the same over the users who rated it
 *
 * The effects are drawn site by site. Their columns are independent of each other given all the
 * rest, so that they are kept by slices of eight columns: (k/8, rows, 8).
 */
#ifndef RECSYS_GIBBS_H
#define RECSYS_GIBBS_H

#include "recsys/gauss.h"
#include "recsys/kernels/kernels.h"
#include "recsys/model.h"

enum { GIBBS_USERS, GIBBS_ITEMS, GIBBS_TIMES, GIBBS_SIDES };
enum { GIBBS_MAX_LEVELS = 16 }; /* of an ordinal scale */

struct gibbs_options {
    int64_t k, sweeps, burn, keep; /* 0: by the size of the data */
    int side;                      /* enum gibbs_effects */
    int likelihood;                /* enum gibbs_likelihood */
    bool noise;                    /* per user */
    double time;                   /* days of a bin; 0: no times */
    double spread;                 /* starting precision of effects */
};

enum gibbs_effects { GIBBS_NONE, GIBBS_IMPLICIT };
enum gibbs_likelihood { GIBBS_NORMAL, GIBBS_ORDINAL };

/* What `layer` of the random stream a draw belongs to; some for each side. */
enum {
    GIBBS_DRAW_ROW = 0,
    GIBBS_DRAW_PRIOR = 4,
    GIBBS_DRAW_EFFECT = 8,
    GIBBS_DRAW_SPREAD = 12,
    GIBBS_DRAW_NOISE = 16,
    GIBBS_DRAW_LATENT = 17,
    GIBBS_DRAW_CUTS = 18,
    GIBBS_DRAW_START = 20,
};

struct gibbs_names {
    const char *factors, *errors, *sites, *effects, *kept; /* of buffers */
};

struct gibbs_side {
    const struct gibbs_names *names;
    uint32_t count;         /* rows */
    const uint64_t *start;  /* of ratings, as in struct recsys_rows */
    const uint32_t *column; /* rows of side `first`, a rating each */
    const uint32_t *second_column;
    const uint32_t *place;          /* where the rating is in the order of users; NULL: here */
    const struct recsys_rows *rows; /* whose values these are */
    int first, second;              /* the other sides; second: -1 without times */
    int own, fixed;                 /* column of the bias; the one that is constant */
    int phase, effect_phase;        /* -1: none */
    int factors, errors;            /* buffers: (count,k); (count,1) squared errors of a row */
    int sites, effects;             /* (k/8, columns*8), (k/8, count*8) */
    float *share;                   /* (count) 1/sqrt(ratings) */
    float *noise;                   /* normals for the sites, (k/8, columns, 8) */
    float *rest;                    /* (k/8, count, 8) */
    double *mu, *lambda;            /* (k), (k,k) */
    float *prior, *prior_mean;      /* lambda and lambda mu in floats */
};

/* Of one thread. */
struct gibbs_scratch {
    float *triangles, *lower, *panel, *x, *noise, *sums;
};

struct gibbs {
    int k, sides, keep, thin;
    int64_t burn;
    struct gibbs_side side[GIBBS_SIDES];
    struct gibbs_scratch *scratch; /* of each thread */
    int state;                     /* buffer (1, GIBBS_STATE) */
    int user_noise;                /* buffer (users,1); -1: one noise for all */
    int kept[GIBBS_SIDES];         /* buffers (rows, keep*k [+8]) */
    int kept_sites;                /* those of the users' effects, (items, keep*k); -1 */
    int kept_prior;                /* (keep, GIBBS_PRIOR(k)): what a new user needs */
    int unknown;                   /* (GIBBS_SIDES, keep*k + 8) */
    bool ordinal;                  /* likelihood=ordinal */
    float *latent;                 /* (ratings) of that */
    float *site_lower;             /* factor of lambda, in lanes */
    uint32_t *bins[2];             /* time bins of ratings, by user and by item */
    void *memory[32];              /* all that is allocated besides buffers */
    int memory_count;
    uint64_t memory_bytes;
    uint32_t first_day;
    double days;
    uint64_t *bin_start;
    uint32_t *bin_user, *bin_item, *bin_place, *item_place;
};

/* Columns of the buffer `state`. */
enum {
    GIBBS_ALPHA,
    GIBBS_SPREAD, /* of users and of items */
    GIBBS_KEPT = GIBBS_SPREAD + 2,
    GIBBS_CUTS,
    GIBBS_STATE = GIBBS_CUTS + GIBBS_MAX_LEVELS,
};

/* Columns of `kept_prior`: lambda, lambda mu, then alpha and cuts. */
#define GIBBS_PRIOR_ALPHA(k) ((k) * (k) + (k))
#define GIBBS_PRIOR_CUTS(k) (GIBBS_PRIOR_ALPHA(k) + 1)
#define GIBBS_PRIOR(k) (GIBBS_PRIOR_CUTS(k) + GIBBS_MAX_LEVELS)

/* Facts of the fit. */
enum { GIBBS_FACT_K, GIBBS_FACT_KEEP, GIBBS_FACT_FIRST_DAY, GIBBS_FACT_BINS, GIBBS_FACTS };

static inline struct gibbs *gibbs_of(const struct recsys_fit *fit)
{
    return fit->own;
}

/* ---- gibbs_setup.c ---- */

base_status gibbs_open(struct recsys_fit *fit);
base_status gibbs_reopen(struct recsys_fit *fit);
void gibbs_close(struct recsys_fit *fit);
base_status gibbs_start(struct recsys_fit *fit);
void gibbs_grown(struct recsys_fit *fit);
uint32_t gibbs_bin(const struct gibbs *g, uint32_t time);

/* ---- gibbs_rows.c ---- */

/* Draws the rows from … to-1 of a side. */
void gibbs_rows(struct recsys_fit *fit, int side, uint32_t from, uint32_t to);

/* ---- gibbs_prior.c ---- */

/* Draws mu and lambda of a side, by all of its rows. */
base_status gibbs_prior(struct recsys_fit *fit, int side);
void gibbs_effects_prepare(struct recsys_fit *fit, int side);
/* Draws slices of eight columns of a side's sites; sets its effects. */
void gibbs_effects(struct recsys_fit *fit, int side, uint32_t from, uint32_t to);
base_status gibbs_spread(struct recsys_fit *fit, int side);

/* ---- gibbs_ordinal.c ---- */

base_status gibbs_cuts_start(struct recsys_fit *fit);
base_status gibbs_latents(struct recsys_fit *fit);
/* Of a latent mean, the expected rating; *variance_p: of a rating around it. */
double gibbs_ordinal_mean(const struct recsys_scale *scale, const float *cuts, double x,
                          double *variance_p);
double gibbs_ordinal_latent(const struct recsys_scale *scale, const float *cuts, double x,
                            uint32_t level);

/* ---- gibbs_answer.c ---- */

void gibbs_keep(struct recsys_fit *fit);
struct recsys_guess gibbs_guess(const struct recsys_fit *fit, const float *user, uint32_t item,
                                uint32_t time);
void gibbs_scores(const struct recsys_fit *fit, const float *user, uint32_t from, uint32_t to,
                  float *values);
int gibbs_samples(const struct recsys_fit *fit); /* that answers are made of */
/* What a user's row p and an item's row q of one sample say, without the mean of all ratings; d: of
 * a time bin, or NULL. */
double gibbs_says(const struct gibbs *g, const float *p, const float *q, const float *d);
const float *gibbs_time_row(const struct recsys_fit *fit, uint32_t time); /* NULL: no times */

/* ---- gibbs_fold_time.c ---- */

/* What the bins of a new user's ratings do not know yet: of some of the ratings, the bin and its
 * doubt, 0 … 1. */
struct gibbs_doubts {
    struct gibbs_doubt {
        uint32_t bin;
        double doubt;
    } * at;
    uint32_t count;
};

/* Of a model with times. */
void gibbs_doubts_find(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                       uint32_t count, struct gibbs_doubts *doubts_p);
void gibbs_doubts_fini(struct gibbs_doubts *doubts); /* accepts zeros */
/* A user's prior in the sample that begins at float `at` of kept rows, lambda (k,k) and lambda mu
 * (k), becomes that of the new user. */
base_status gibbs_doubts_widen(const struct recsys_fit *fit, const struct gibbs_doubts *doubts,
                               size_t at, double *lambda, double *lambda_mu);

/* ---- gibbs_fold.c ---- */

base_status gibbs_fold(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                       uint32_t count, float *row);
base_status gibbs_explain(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                          uint32_t count, uint32_t item, float *parts, float *rest_p);

#endif
