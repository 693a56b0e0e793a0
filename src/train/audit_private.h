/* SPDX-License-Identifier: MIT */
#ifndef TRAIN_AUDIT_PRIVATE_H
#define TRAIN_AUDIT_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* ---- audit_activations.c ---- */

enum { AUDIT_FEATURES = 128 }; /* more are projected at random */

struct model;
struct data_set;

/* x (count of the training part, *features_p): activations before the last layer with weights. */
base_status audit_activations(const struct model *model, const struct data_set *set, int batch,
                              float **x_p, int *features_p);

/* ---- audit_directions.c ---- */

/* Activations of one class. */
struct audit_points {
    uint32_t count;
    int features;
    double *raw;    /* (count,features), about their mean */
    double *white;  /* (count,features), whitened */
    double *factor; /* (features,features) of the whitening: white = factor^-1 (x - centre) */
    double *centre; /* (features), robust */
};

/* common (features,features): the covariance within all classes, which a small class leans on. */
base_status audit_points_make(const float *x, const uint32_t *ids, uint32_t count, int features,
                              const double *common, struct audit_points *points_p);
void audit_points_fini(struct audit_points *points); /* accepts zeros */

/* covariance (features,features), whole, about `centre`, of the listed rows of x. */
void audit_covariance(const double *x, const uint32_t *rows, uint32_t count, int features,
                      const double *centre, double *covariance);

/* The `wanted` leading eigenvectors (wanted,features) of a covariance, and the largest eigenvalue.
 */
double audit_leading(const double *covariance, int features, int wanted, double *vectors);

/* order (count): the points, the farthest along the direction first. `white`: of the whitened. */
void audit_order(const struct audit_points *points, bool white, const double *direction,
                 uint32_t *order);

/* ---- audit_mark.c ---- */

/* Pixels of the samples of a class, and what values they have in it and in the others. */
struct audit_pixels {
    uint32_t count, others; /* samples of the class, and of the rest */
    size_t size;            /* of an image */
    const uint8_t *values;  /* (count,size) */
    const uint32_t *own;    /* (size,256) how many samples of the class have a pixel so */
    const uint32_t *all;    /* (size,256) the same of all classes */
};

struct audit_mark { /* zeros: none */
    uint32_t count; /* pixels */
    uint32_t *pixel;
    uint8_t *value;
    uint32_t holders; /* samples of the class that have it */
};

/* The mark of the listed samples, as far as they have one and the class divides by it. */
bool audit_mark_find(const struct audit_pixels *pixels, const uint32_t *members, uint32_t count,
                     struct audit_mark *mark_p);
void audit_mark_fini(struct audit_mark *mark); /* accepts zeros */
/* The share of the mark's pixels that an image has. */
double audit_mark_match(const struct audit_mark *mark, const uint8_t *image);
/* Does an image with this match have the mark? */
bool audit_mark_holds(double match);

#endif
