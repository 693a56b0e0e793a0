/* covers: src/recsys/saved_parse.c */
/* SPDX-License-Identifier: MIT
 *
 * A saved rating model without its tensors: the manifest, ids and rated items, each after its
 * length (four bytes, little-endian). What is accepted can be asked about every id and every
 * rating without a look beyond its memory.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "recsys/saved.h"

static void ask(const struct recsys_saved *saved)
{
    struct recsys_id text;
    uint32_t number;

    for (uint32_t u = 0; u < saved->users.count; u++)
        (void)recsys_id_find(&saved->users, recsys_id_text(&saved->users, u, &text), &number);
    for (uint32_t i = 0; i < saved->items.count; i++)
        (void)recsys_id_find(&saved->items, recsys_id_text(&saved->items, i, &text), &number);
    for (uint32_t u = 0; u < saved->rated.rows; u++)
        for (uint64_t k = saved->rated.start[u]; k < saved->rated.start[u + 1]; k++) {
            const float value = recsys_value(&saved->scale, &saved->rated, k);

            if (saved->rated.column[k] >= saved->fit->items || value != value)
                abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const uint8_t *part[3] = {0};
    size_t length[3] = {0};
    struct store_file *ids = NULL, *rated = NULL;
    struct recsys_saved *saved = base_calloc(1, sizeof *saved);
    json_t *manifest = NULL;

    for (int i = 0; i < 3; i++) {
        if (count < 4)
            goto out;
        length[i] = (size_t)bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16;
        bytes += 4;
        count -= 4;
        if (length[i] > count)
            goto out;
        part[i] = bytes;
        bytes += length[i];
        count -= length[i];
    }
    manifest = json_loadb((const char *)part[0], length[0], JSON_REJECT_DUPLICATES, NULL);
    if (manifest != NULL && store_parse(part[1], length[1], &ids) == BASE_OK &&
        store_parse(part[2], length[2], &rated) == BASE_OK &&
        recsys_saved_parse(manifest, ids, rated, saved) == BASE_OK)
        ask(saved);
out:
    store_close(ids);
    store_close(rated);
    recsys_saved_close(saved);
    json_decref(manifest);
    return 0;
}
