/* SPDX-License-Identifier: MIT
 *
 * Checkpoint folders: DIR/step-N/ holds safetensors files and manifest.json, written last, with
 * sizes and SHA-256 of the others and a digest of itself (of all its bytes after the digest:
 * tail -c +76 manifest.json | sha256sum). A checkpoint is whole or absent: it is built in a
 * temporary folder beside its place, synced, renamed. What the tensors mean is not known here
 * (model/ knows).
 */
#ifndef STORE_CHECKPOINT_H
#define STORE_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"

struct store_save; /* a checkpoint being written */

/* `dir` is made if needed; leftovers of killed writers in it are removed. One writer at a time in
 * a directory. */
base_status store_save_begin(const char *dir, uint64_t step, struct store_save **save_p);
/* The path at which to write file `name` ("model.safetensors"); valid until commit or abandon. */
const char *store_save_path(struct store_save *save, const char *name);
/* The caller wrote checkpoint `step` in the same folder: store_save_repeat may take files of it. */
void store_save_after(struct store_save *save, uint64_t step);
/* For a file whose content has not changed since that checkpoint: takes it by a hard link, with the
 * size and the digest that the manifest has of it. False: there is none to take, so write it. */
bool store_save_repeat(struct store_save *save, const char *name);
/* Completes `manifest` (borrowed) with "schema", "step", "files" and "digest", makes the
 * checkpoint appear, then removes all but the newest `keep` (0: all stay; the best stays too).
 * A step that is there already is replaced. Checkpoints of later steps are left alone. Frees
 * `save` in any case; on failure nothing appears and nothing is removed (if only the last sync of
 * `dir` fails, the checkpoint is there, whole, but may not survive a power cut). */
base_status store_save_commit(struct store_save *save, json_t *manifest, unsigned keep);
void store_save_abandon(struct store_save *save); /* accepts NULL */

/* Remembers step N as the best one (DIR/best, replaced atomically). */
base_status store_mark_best(const char *dir, uint64_t step);

struct store_checkpoint {
    char *path; /* path of the step-N folder */
    uint64_t step;
    json_t *manifest; /* verified */
};

/* Opens a checkpoint: `path` is a step-N folder (exactly that one), a checkpoints folder or a run
 * folder (the newest that verifies; every one passed over is named with base_warn).
 * `best`: the one marked best, in a checkpoints or run folder. */
base_status store_checkpoint_open(const char *path, bool best,
                                  struct store_checkpoint *checkpoint_p);
/* The path of a file that the manifest lists, which is verified; a name that it does not list is an
 * error, even where there is such a file. base_free. */
base_status store_checkpoint_file(const struct store_checkpoint *checkpoint, const char *name,
                                  char **path_p);
bool store_checkpoint_is_there(const char *dir, uint64_t step);
/* True if DIR has a checkpoint, whole or not. A killed writer may leave a folder without one. */
bool store_has_checkpoint(const char *dir);
/* The "digest" of the newest checkpoint's manifest, without a look at its files: enough to tell
 * whether the caller knows this checkpoint. NULL: the manifest cannot be read or its digest is
 * wrong. base_free. */
char *store_newest_digest(const char *dir);
void store_checkpoint_close(struct store_checkpoint *checkpoint); /* accepts zeros */

/* Checks and parses a manifest's text without looking at files (fuzzing: `check_digest` false). */
base_status store_manifest_parse(const char *text, size_t count, bool check_digest,
                                 json_t **manifest_p);

#endif
