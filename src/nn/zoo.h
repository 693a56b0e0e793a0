/* SPDX-License-Identifier: MIT
 *
 * What a file in nn/zoo/ provides: `const struct nn_zoo nn_zoo_NAME`, a model known by name, as
 * model text. `NAME:ARGUMENTS` hands the arguments over.
 */
#ifndef NN_ZOO_H
#define NN_ZOO_H

#include <stddef.h>

#include "base/status.h"

struct nn_closed;

struct nn_zoo {
    const char *name, *help;
    const char *arguments; /* "WIDTHxDEPTH", or NULL when it takes none */
    const char *example;   /* "mlp:64x2"; NULL: the name */
    bool optional;         /* it can do without arguments */
    base_status (*text)(const char *arguments, char **text_p); /* base_free */
    const struct nn_closed *closed; /* how its weights are computed (nn/closed.h); NULL: in steps */
};

extern const struct nn_zoo *const nn_zoo_registry[];
extern const size_t nn_zoo_count;

/* The model of the zoo that `model` names, NULL: none; *arguments_p is what follows its colon, or
 * NULL. */
const struct nn_zoo *nn_zoo_find(const char *model, const char **arguments_p);

/* The text of a model given as a zoo name or as a file; a wrong name lists the known ones. */
base_status nn_model_text(const char *model, char **text_p);

#endif
