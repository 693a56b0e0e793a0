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

/* A reference, or NULL: then *known_p tells whether there is a model of that name. `version` NULL:
 * the default one. */
struct serve_version *serve_models_find(struct serve_models *models, const char *name,
                                        const char *version, bool *known_p);
void serve_models_release(struct serve_models *models, struct serve_version *version);

/* Takes the version over, of which there is none yet; it becomes the default of a new name. */
void serve_models_add(struct serve_models *models, struct serve_version *version);
/* Takes it out, and frees it once no handler uses it. */
void serve_models_remove(struct serve_models *models, struct serve_version *version);
bool serve_models_set_default(struct serve_models *models, const char *name, const char *version);

/* All of them, by name and then in the order of registration, each with a reference; `defaults`:
 * of each name the default one only. Release every one, then base_free the array. */
struct serve_version **serve_models_list(struct serve_models *models, bool defaults,
                                         size_t *count_p);
bool serve_models_is_default(struct serve_models *models, const struct serve_version *version);

/* Letters, digits, '.', '_' and '-', not beginning with '.': what a name or version may be. */
bool serve_is_name(const char *text);

#endif
