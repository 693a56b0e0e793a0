/* SPDX-License-Identifier: MIT
 *
 * Looking a plug-in up by name. Every entry of a generated registry (cmake/registry.cmake) is a
 * struct whose first member is its `const char *name`. A NULL follows the last one.
 */
#ifndef BASE_REGISTRY_H
#define BASE_REGISTRY_H

#include <stddef.h>

#include "base/status.h"

/* Of an entry; NULL for the one after the last. */
const char *base_registry_name(const void *registry, size_t index);

/* The entry of that name, or NULL. */
const void *base_registry_get(const char *name, const void *registry, size_t count);

/* The same; an unknown name is a usage error that lists the known ones and the nearest.
 * `found_p` is the address of a pointer to the entry's type. */
base_status base_registry_find(const char *what, const char *name, const void *registry,
                               size_t count, void *found_p);

#endif
