/* SPDX-License-Identifier: MIT
 *
 * A rating model opened from a checkpoint, without its ratings. saved_parse.c reads what the
 * checkpoint says, this file brings it there and adds the tensors.
 */
#include "recsys/saved.h"

#include <string.h>

#include "base/mem.h"
#include "recsys/model_private.h"
#include "recsys/recsys_private.h"
#include "store/safetensors.h"

bool recsys_saved_is(const json_t *manifest)
{
    const char *task = json_string_value(json_object_get(manifest, "task"));

    return task != NULL && strcmp(task, "ratings") == 0;
}

static base_status open_file(const struct store_checkpoint *checkpoint, const char *name,
                             struct store_file **file_p)
{
    base_status st = BASE_OK;
    char *path = NULL;

    TRY(store_checkpoint_file(checkpoint, name, &path));
    TRY(store_open(path, file_p));
out:
    base_free(path);
    return st;
}

static base_status read_model(struct recsys_saved *saved, const struct store_checkpoint *checkpoint)
{
    base_status st = BASE_OK;
    struct recsys_fit *fit = saved->fit;
    char *path = NULL;

    TRY(base_tensor(fit->floats, sizeof(float), "a rating model", &fit->memory));
    recsys_fit_place(fit, fit->memory);
    TRY(store_checkpoint_file(checkpoint, RECSYS_MODEL_FILE, &path));
    TRY(recsys_saved_read(fit, path, NULL));
out:
    base_free(path);
    return st;
}

base_status recsys_saved_outline(const struct store_checkpoint *checkpoint,
                                 struct recsys_saved **saved_p)
{
    base_status st = BASE_OK;
    struct recsys_saved *saved = base_calloc(1, sizeof *saved);
    struct store_file *ids = NULL, *rated = NULL;

    *saved_p = NULL;
    if (!recsys_saved_is(checkpoint->manifest))
        TRY(base_fail(BASE_ERR_USAGE, "it is no rating model"));
    TRY(open_file(checkpoint, RECSYS_IDS_FILE, &ids));
    TRY(open_file(checkpoint, RECSYS_RATED_FILE, &rated));
    TRY(recsys_saved_parse(checkpoint->manifest, ids, rated, saved));
    *saved_p = saved;
    saved = NULL;
out:
    store_close(ids);
    store_close(rated);
    recsys_saved_close(saved);
    return st;
}

base_status recsys_saved_open(const struct store_checkpoint *checkpoint, int threads,
                              struct recsys_saved **saved_p)
{
    base_status st = BASE_OK;
    struct recsys_saved *saved = NULL;

    *saved_p = NULL;
    TRY(recsys_saved_outline(checkpoint, &saved));
    TRY(base_team_new(recsys_threads(threads, UINT64_MAX), &saved->team));
    saved->fit->team = saved->team;
    TRY(read_model(saved, checkpoint));
    *saved_p = saved;
    saved = NULL;
out:
    recsys_saved_close(saved);
    return base_prefix(st, "%s", checkpoint->path);
}

void recsys_saved_close(struct recsys_saved *saved)
{
    if (saved == NULL)
        return;
    if (saved->fit != NULL && saved->fit->model != NULL)
        recsys_fit_free(saved->fit);
    else
        base_free(saved->fit);
    base_team_free(saved->team);
    for (int i = 0; i < saved->memory_count; i++)
        base_free(saved->memory[i]);
    base_free(saved->options);
    base_free(saved->model);
    base_free(saved->data);
    base_free(saved);
}
