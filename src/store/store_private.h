/* SPDX-License-Identifier: MIT
 *
 * Shared inside store/ only: types of tensors, the manifest's text, and the folders of a
 * checkpoints folder.
 */
#ifndef STORE_PRIVATE_H
#define STORE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"
#include "store/safetensors.h"

#define STORE_METADATA "__metadata__" /* the only key of a header that is not a tensor */
enum { STORE_MAX_HEADER = 64 << 20, STORE_TYPES = STORE_BF16 + 1 };

struct store_type_info {
    const char *name;
    size_t size;
};
extern const struct store_type_info store_types[STORE_TYPES];

/* The number of bytes that follows from type and shape. */
base_status store_tensor_size(const struct store_tensor *t, size_t *bytes_p);

#define STORE_MANIFEST "manifest.json"
enum { STORE_SCHEMA = 1, STORE_MAX_MANIFEST = 16 << 20 };

/* The text of a complete manifest, its digest first; free with base_free. Fails when the text
 * would not be read back. */
base_status store_manifest_text(const json_t *manifest, char **text_p, size_t *count_p);

/* The manifest of the checkpoint folder `path`, without a look at its files; a new reference. */
base_status store_read_manifest(const char *path, json_t **manifest_p);

/* DIR/step-N, or DIR/step-N.old: the former step-N while it is being replaced. */
struct store_place {
    uint64_t step;
    bool old;
};

/* Newest first, an old one after the one that replaced it; free with base_free. */
base_status store_list_places(const char *dir, struct store_place **places_p, size_t *count_p);
char *store_place_path(const char *dir, struct store_place place); /* free with base_free */
bool store_step_of(const char *name, uint64_t *step_p);            /* "step-N" exactly */
base_status store_read_best(const char *dir, bool *marked_p, uint64_t *step_p);

#endif
