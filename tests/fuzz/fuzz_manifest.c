/* covers: src/store/manifest.c src/model/about.c src/model/table.c */
/* SPDX-License-Identifier: MIT
 *
 * The manifest of a checkpoint, without its digest, which would reject every mutation. What is
 * accepted must survive being written with a digest and read with it; so must what it says about
 * a model, where it says that.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/about.h"
#include "store/checkpoint.h"
#include "store/store_private.h"

static void write_and_read(json_t *manifest)
{
    json_t *again;
    char *text;
    size_t count;

    json_object_del(manifest, "digest");
    if (store_manifest_text(manifest, &text, &count) != BASE_OK ||
        store_manifest_parse(text, count, true, &again) != BASE_OK)
        abort();
    json_object_del(again, "digest");
    if (!json_equal(manifest, again))
        abort();
    json_decref(again);
    base_free(text);
}

static void read_about(const json_t *manifest)
{
    struct model_about about, again;
    json_t *first, *second;

    if (model_about_from_json(manifest, &about) != BASE_OK)
        return;
    if (model_about_place(&about) == NULL)
        abort();
    if (model_about_is_regression(&about) && !isfinite(model_about_number(&about, 0)))
        abort();
    first = model_about_to_json(&about);
    if (first == NULL || model_about_from_json(first, &again) != BASE_OK)
        abort();
    second = model_about_to_json(&again);
    if (!json_equal(first, second))
        abort();
    json_decref(first);
    json_decref(second);
    model_about_fini(&about);
    model_about_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    json_t *manifest;

    if (store_manifest_parse((const char *)bytes, count, false, &manifest) == BASE_OK) {
        read_about(manifest);
        write_and_read(manifest);
    }
    json_decref(manifest);
    if (store_manifest_parse((const char *)bytes, count, true, &manifest) == BASE_OK)
        json_decref(manifest);
    return 0;
}
