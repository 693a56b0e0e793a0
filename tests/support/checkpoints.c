/* SPDX-License-Identifier: MIT */
#include "support/checkpoints.h"

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "store/safetensors.h"

enum { VALUES = 64 };
static const char *const files[] = {"model.safetensors", "state.safetensors"};

static void fill(uint64_t step, uint32_t file, uint32_t values[VALUES])
{
    struct base_rng rng = base_rng_of(step, BASE_STREAM_TEST, file, 0, 0);

    for (uint32_t i = 0; i < VALUES; i++)
        values[i] = base_rng_u32(&rng, i);
}

static base_status write_file(const char *path, uint64_t step, uint32_t file)
{
    const struct store_tensor tensors[] = {
        {.name = "fc.weight", .type = STORE_F32, .rank = 2, .shape = {4, 8}},
        {.name = "fc.bias", .type = STORE_U32, .rank = 1, .shape = {32}},
    };
    base_status st = BASE_OK;
    struct store_writer *w = NULL;
    uint32_t values[VALUES];

    fill(step, file, values);
    TRY(store_create(path, tensors, 2, &w));
    TRY(store_write(w, values, sizeof values));
    st = store_finish(w);
    w = NULL;
out:
    store_abandon(w);
    return st;
}

base_status support_save(const char *dir, uint64_t step, unsigned keep)
{
    base_status st = BASE_OK;
    struct store_save *save = NULL;
    json_t *manifest = json_pack("{s:s,s:f,s:I}", "model", "dense 10\nsoftmax\n", "third",
                                 (double)step / 3, "twice", (json_int_t)(2 * step));

    TRY(store_save_begin(dir, step, &save));
    for (uint32_t i = 0; i < 2; i++)
        TRY(write_file(store_save_path(save, files[i]), step, i));
    st = store_save_commit(save, manifest, keep);
    save = NULL;
out:
    store_save_abandon(save);
    json_decref(manifest);
    return st;
}

static bool file_is_right(const char *path, uint64_t step, uint32_t file)
{
    struct store_file *f = NULL;
    uint32_t values[VALUES];
    const struct store_tensor *weight, *bias;
    bool right = false;

    fill(step, file, values);
    if (store_open(path, &f) != BASE_OK)
        return false;
    weight = store_find(f, "fc.weight");
    bias = store_find(f, "fc.bias");
    if (store_count(f) == 2 && weight != NULL && bias != NULL)
        right = weight->type == STORE_F32 && weight->rank == 2 && weight->shape[0] == 4 &&
                bias->type == STORE_U32 && weight->bytes == 128 && bias->bytes == 128 &&
                memcmp(weight->data, values, 128) == 0 && memcmp(bias->data, values + 32, 128) == 0;
    store_close(f);
    return right;
}

bool support_is_right(const struct store_checkpoint *checkpoint)
{
    uint64_t step = checkpoint->step;
    const char *model;
    double third;
    int64_t twice;
    bool right;

    right = base_json_string(checkpoint->manifest, "model", &model) == BASE_OK &&
            strcmp(model, "dense 10\nsoftmax\n") == 0 &&
            base_json_real(checkpoint->manifest, "third", &third) == BASE_OK &&
            third == (double)step / 3 &&
            base_json_integer(checkpoint->manifest, "twice", &twice) == BASE_OK &&
            (uint64_t)twice == 2 * step;
    for (uint32_t i = 0; i < 2 && right; i++) {
        char *path = base_format("%s/%s", checkpoint->path, files[i]);

        right = file_is_right(path, step, i);
        base_free(path);
    }
    return right;
}
