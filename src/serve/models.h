/* SPDX-License-Identifier: MIT
 *
 * The served models by name, each with its versions and a default one. Handlers look versions up
 * and hold a reference while they use one; the management's thread alone adds and removes.
 */
#ifndef SERVE_MODELS_H
#define SERVE_MODELS_H

#include "serve/version.h"

struct serve_models;

struct serve_models *serve_models_new(void);
void serve_models_free(struct serve_models *models); /* accepts NULL; ends every worker */

/* Returns a reference; NULL: there is none, and *known_p tells whether there is a model of that
 * name. `version` NULL means the default one. */
struct serve_version *serve_models_find(struct serve_models *models, const char *name,
                                        const char *version, bool *known_p);
void serve_models_release(struct serve_models *models, struct serve_version *version);

/* Takes over a version that is not there yet. The first one of a name becomes its default. */
void serve_models_add(struct serve_models *models, struct serve_version *version);
/* Removes the version, and frees it once no handler uses it. */
void serve_models_remove(struct serve_models *models, struct serve_version *version);
bool serve_models_set_default(struct serve_models *models, const char *name, const char *version);

/* All versions, by name and then in the order of registration, each with a reference; with
 * `defaults` only each name's default. Release every one, then base_free the array. */
struct serve_version **serve_models_list(struct serve_models *models, bool defaults,
                                         size_t *count_p);
bool serve_models_is_default(struct serve_models *models, const struct serve_version *version);

/* True for a text that may be a name or a version: letters, digits, '.', '_' and '-', not beginning
 * with '.'. */
bool serve_is_name(const char *text);

#endif
