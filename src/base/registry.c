/* SPDX-License-Identifier: MIT */
#include "base/registry.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static const char *name_of(const void *entry)
{
    return *(const char *const *)entry;
}

const char *base_registry_name(const void *registry, size_t index)
{
    const void *entry = ((const void *const *)registry)[index];

    return entry != NULL ? name_of(entry) : NULL;
}

const void *base_registry_get(const char *name, const void *registry, size_t count)
{
    const void *const *entries = registry;

    for (size_t i = 0; i < count; i++)
        if (strcmp(name_of(entries[i]), name) == 0)
            return entries[i];
    return NULL;
}

base_status base_registry_find(const char *what, const char *name, const void *registry,
                               size_t count, void *found_p)
{
    const void *const *entries = registry;
    const void *found = base_registry_get(name, registry, count);
    const char **names;
    base_status st;

    memcpy(found_p, &found, sizeof found);
    if (found != NULL)
        return BASE_OK;
    names = base_calloc(count, sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = name_of(entries[i]);
    st = base_unknown(BASE_ERR_USAGE, what, name, names, count);
    base_free(names);
    return st;
}
