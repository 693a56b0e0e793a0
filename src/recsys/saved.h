/* SPDX-License-Identifier: MIT
 *
 * A rating model in a checkpoint folder, and a fit that is opened from there without the ratings:
 * enough for guesses and new users, not for sweeps. Beside the tensors of the model
 * (model.safetensors: every buffer of the fit by its name, but for the passing ones) a checkpoint
 * has the ids (ids.safetensors) and what each user rated in the training part
 * (rated.safetensors); the manifest has the rest as an object "ratings" (docs/files.md).
 */
#ifndef RECSYS_SAVED_H
#define RECSYS_SAVED_H

#include "base/json.h"
#include "recsys/model.h"
#include "store/checkpoint.h"
#include "store/safetensors.h"

#define RECSYS_MODEL_FILE "model.safetensors"
#define RECSYS_IDS_FILE "ids.safetensors"
#define RECSYS_RATED_FILE "rated.safetensors"

struct recsys_saved {
    struct recsys_fit *fit;         /* for recsys_predict, recsys_fold, recsys_score */
    struct recsys_scale scale;      /* the fit's */
    struct recsys_ids users, items; /* numbers of both are rows of the fit: recsys_id_find, _text */
    struct recsys_rows rated;       /* by user: the training part, without times */
    uint32_t *item_counts;          /* (items) its ratings of each */
    char *model;                    /* "bmf:k=32": as it was asked for */
    char *data;                     /* the place of the ratings, as it was given */
    uint64_t seed;
    /* Below: how it is kept. */
    void *options;
    struct base_team *team;
    void *memory[12];
    int memory_count;
};

/* ---- a checkpoint is written, and read by a fit that has its ratings ---- */

/* For a fit whose flat memory is not here as a whole: floats [from, from + count) of it, a buffer
 * at a time, in the order of the fit's buffers. */
struct recsys_carrier {
    base_status (*bring)(void *context, size_t from, size_t count, const float **memory_p);
    base_status (*take)(void *context, size_t from, size_t count, const float *memory);
    void *context;
};

/* Writes the three files; `ids` are of the users and items of the fit. `carrier` NULL: the fit's
 * buffers have memory. */
base_status recsys_saved_write(const struct recsys_fit *fit, const struct recsys_ratings *ids,
                               const struct recsys_carrier *carrier, struct store_save *save);
/* Those of ids and ratings alone. */
base_status recsys_saved_write_rated(const struct recsys_fit *fit, const struct recsys_ratings *ids,
                                     struct store_save *save);
/* The object "ratings" of the manifest; a new reference. `model`: as it was asked for. */
json_t *recsys_saved_manifest(const struct recsys_fit *fit, const char *model);
/* The buffers of a fit of the same ratings, from the model's file at `path`. */
base_status recsys_saved_read(const struct recsys_fit *fit, const char *path,
                              const struct recsys_carrier *carrier);

/* ---- a checkpoint is read by a fit that has more ratings ---- */

/* The model as it is asked for, of a manifest, and with the sizes that it has: they are not to
 * change when ratings are added; base_free. */
base_status recsys_saved_text(const json_t *manifest, char **text_p);
/* Users and items that the checkpoint knows get their rows of its buffers, wherever they are among
 * those of the fit, whose ids are `ids`. The fit has starting values, which the others keep. */
base_status recsys_saved_grow(struct recsys_fit *fit, const struct recsys_ratings *ids,
                              const struct store_checkpoint *checkpoint);

/* ---- a checkpoint is used without the ratings ---- */

/* Is this the manifest of a rating model? */
bool recsys_saved_is(const json_t *manifest);

/* `threads`: of fit->team; 0: one a core. Every byte of the files is checked against the others
 * before it is used as a number or an index. */
base_status recsys_saved_open(const struct store_checkpoint *checkpoint, int threads,
                              struct recsys_saved **saved_p);
void recsys_saved_close(struct recsys_saved *saved); /* accepts NULL */
/* The same without the model's tensors. */
base_status recsys_saved_outline(const struct store_checkpoint *checkpoint,
                                 struct recsys_saved **saved_p);

/* All but the model's tensors, from files in memory, into zeros (fuzzing). On failure, too, the
 * caller closes `saved`. */
base_status recsys_saved_parse(const json_t *manifest, const struct store_file *ids,
                               const struct store_file *rated, struct recsys_saved *saved);

#endif
