/* SPDX-License-Identifier: MIT */
#include "train/wire.h"

#include <string.h>

#include "base/mem.h"
#include "base/registry.h"
#include "base/str.h"

base_status train_wire_find(const char *text, struct train_wiring *wiring)
{
    base_status st = BASE_OK;
    char *name = base_strndup(text, strcspn(text, "/")), *list = base_options_unnest(text);
    const struct train_wire *wire = NULL;

    *wiring = (struct train_wiring){0};
    TRY(base_registry_find("wire", name, train_wire_registry, train_wire_count, &wire));
    TRY(base_options_parse(wire->options, "wire", name, wire->defaults, wire->options_size, list,
                           &wiring->options));
    wiring->wire = wire;
out:
    base_free(list);
    base_free(name);
    return st;
}

void train_wiring_fini(struct train_wiring *wiring)
{
    base_free(wiring->options);
    *wiring = (struct train_wiring){0};
}

base_status train_wire_check(const char *text)
{
    struct train_wiring wiring = {0};
    base_status st = text != NULL ? train_wire_find(text, &wiring) : BASE_OK;

    train_wiring_fini(&wiring);
    return st;
}

bool train_wire_is_lossy(const char *text)
{
    struct train_wiring wiring = {0};
    bool lossy = text != NULL && train_wire_find(text, &wiring) == BASE_OK && !wiring.wire->exact;

    train_wiring_fini(&wiring);
    return lossy;
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
