/* SPDX-License-Identifier: MIT */
#include "train/wire.h"

#include <string.h>

#include "base/mem.h"
#include "base/registry.h"
#include "base/str.h"

/* One "option=value". */
static base_status set_option(const struct train_wire *wire, char *text, void *options)
{
    char *value = strchr(text, '=');
    struct base_option row;

    if (value != NULL)
        *value++ = '\0';
    if (base_option_find(wire->options, text, strlen(text), &row) < 0)
        return base_fail(BASE_ERR_USAGE, "wire %s has no option '%s'", wire->name, text);
    if (value == NULL)
        return base_fail(BASE_ERR_USAGE, "wire %s: %s takes a value, %s=%s", wire->name, text, text,
                         row.argument);
    return base_prefix(base_option_set(&row, "", value, options), "wire %s", wire->name);
}

base_status train_wire_find(const char *text, struct train_wiring *wiring)
{
    base_status st = BASE_OK;
    char *copy = base_strdup(text), *rest = NULL, *name = strtok_r(copy, "/", &rest);

    *wiring = (struct train_wiring){0};
    TRY(base_registry_find("wire", name != NULL ? name : "", train_wire_registry, train_wire_count,
                           &wiring->wire));
    wiring->options = base_calloc(1, wiring->wire->options_size + 1);
    if (wiring->wire->defaults != NULL)
        memcpy(wiring->options, wiring->wire->defaults, wiring->wire->options_size);
    for (char *at = strtok_r(NULL, "/", &rest); at != NULL; at = strtok_r(NULL, "/", &rest))
        TRY(set_option(wiring->wire, at, wiring->options));
out:
    if (st != BASE_OK)
        train_wiring_fini(wiring);
    base_free(copy);
    return st;
}

void train_wiring_fini(struct train_wiring *wiring)
{
    base_free(wiring->options);
    *wiring = (struct train_wiring){0};
}

size_t train_wire_bound(const struct train_wiring *wiring, size_t count)
{
    return wiring->wire->bound(wiring->options, count);
}

size_t train_wire_encode(const struct train_wiring *wiring, const float *x, float *residual,
                         size_t count, uint8_t *bytes)
{
    return wiring->wire->encode(wiring->options, x, residual, count, bytes);
}

base_status train_wire_decode(const struct train_wiring *wiring, const uint8_t *bytes,
                              size_t length, float *y, size_t count)
{
    return base_prefix(wiring->wire->decode(wiring->options, bytes, length, y, count), "wire %s",
                       wiring->wire->name);
}
