/* SPDX-License-Identifier: MIT
 *
 * Does a set of images hide a backdoor that a network was trained on? Class by class:
 *
 *   activations  Those of the layer before the last with weights, whitened by the class's own
 *                robust covariance, so that neither the size of a class nor its natural spread
 *                matters.
 *   clusters     Samples at the ends of the directions in which a class spreads oddly: the
 * principal ones before and after whitening (spectral signatures; Tran et al. 2018, Hayase et al.
 * 2021), and those in which other classes lie (activation clustering; Chen et al. 2019). mark
 * Pixels that nearly all samples of a cluster have alike, at the same place, and hardly others do.
 * Samples of the class either have the mark or are far from it. proof        The mark is put on
 * images of other classes, of which the network then takes some for the class.
 *
 * Where all of that is so the samples of the class with the mark are suspicious. A trigger that is
 * at another place in each image, or looks different, is not found.
 */
#ifndef TRAIN_AUDIT_H
#define TRAIN_AUDIT_H

#include "data/dataset.h"
#include "model/model.h"

struct train_audit_class {
    uint32_t samples, suspects;
    /* The largest variance of the whitened activations along a line; 1 where nothing is odd. */
    double spread;
    /* The clearest mark: how many pixels it has (0: none was found), in which rectangle. */
    uint32_t pixels;
    int top, left, bottom, right;
    /* Of images of other classes with the mark, the share that the network takes for this one: of
     * all of them, and of the class that it works best on. */
    double opened, opened_most;
    int32_t from;
};

struct train_audit {
    int32_t classes;
    struct train_audit_class *of; /* (classes) */
    uint32_t count;
    uint32_t *suspects; /* (count) training samples, rising */
    float *scores;      /* (count) the share of the mark's pixels that a suspect has */
};

/* Of the training part of `set`, which was opened for this model. `batch`: samples computed at
 * once. */
base_status train_audit(const struct model *model, const struct data_set *set, int batch,
                        struct train_audit *audit_p);
void train_audit_fini(struct train_audit *audit); /* accepts zeros */

#endif
