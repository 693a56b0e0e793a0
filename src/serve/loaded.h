/* SPDX-License-Identifier: MIT
 *
 * A checkpoint made ready to answer: weights, and what a network needs to compute with them. It
 * does not change once made; versions and workers hold references, so that weights which are being
 * replaced stay until the last batch with them is done.
 */
#ifndef SERVE_LOADED_H
#define SERVE_LOADED_H

#include <stdatomic.h>

#include "model/model.h"
#include "recsys/saved.h"

struct serve_loaded {
    atomic_int refs;
    struct model model; /* of a rating model, the checkpoint alone */
    struct nn_infer *infer;
    struct recsys_saved *ratings; /* a rating model, which is no network; NULL: a network */
    int outputs;                  /* values of an answer */
    bool named;                   /* each output is a class with a name, which answers give */
};

/* `place` is what model_open takes; batches have up to `batch` samples. The caller owns one
 * reference. */
base_status serve_loaded_open(const char *place, const char *runs_dir, int batch,
                              struct serve_loaded **loaded_p);
/* Calls what was opened as `place` by the name `label` from now on, also in the kept message if
 * opening failed (`loaded` is then NULL). */
void serve_loaded_rename(struct serve_loaded *loaded, const char *place, const char *label);

struct serve_loaded *serve_loaded_ref(struct serve_loaded *loaded); /* accepts NULL */
void serve_loaded_unref(struct serve_loaded *loaded);               /* accepts NULL */

#endif
