/* SPDX-License-Identifier: MIT
 *
 * The neural recommender as a network: what src/train trains. models/ncf.c answers with it.
 */
#ifndef RECSYS_NCF_H
#define RECSYS_NCF_H

#include "recsys/model.h"

/* The model's text (docs/model-files.md) for the users and items of a fit of `ncf`. base_free. */
char *recsys_ncf_text(const struct recsys_fit *fit);
/* What the network's output is in: ratings less `mean`, divided by `deviation`. */
void recsys_ncf_scale(struct recsys_fit *fit, double mean, double deviation);

#endif
