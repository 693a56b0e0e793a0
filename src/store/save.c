/* SPDX-License-Identifier: MIT
 *
 * Writing a checkpoint so that it is whole or absent even after a crash: everything goes into
 * DIR/.step-N.tmp-RANDOM, is synced, and one rename makes it DIR/step-N; folders also leave by a
 * rename to such a name before they are emptied. So a name step-N never stands for half a
 * checkpoint, and what a killed writer leaves is recognised by its name and by its lock, which
 * ended with the writer. One writer per directory; a save belongs to one thread at a time.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/checkpoint.h"
#include "store/store_private.h"

struct store_save {
    char *dir, *temporary;
    int lock; /* lock on the temporary folder */
    uint64_t step;
    char **names, **paths; /* names and paths of the files asked for */
    size_t count;
    char *former;     /* path of the checkpoint that store_save_after names; NULL: none */
    json_t *repeated; /* manifest entries of the files taken from there, by name */
};

static char *temporary_path(const char *dir, uint64_t step)
{
    char *hidden = base_format("%s/.step-%llu", dir, (unsigned long long)step);
    char *temporary = base_temporary(hidden);

    base_free(hidden);
    return temporary;
}

static void free_save(struct store_save *s)
{
    base_names_free(s->names, s->count);
    base_names_free(s->paths, s->count);
    if (s->lock >= 0)
        close(s->lock);
    json_decref(s->repeated);
    base_free(s->former);
    base_free(s->temporary);
    base_free(s->dir);
    base_free(s);
}

base_status store_save_begin(const char *dir, uint64_t step, struct store_save **save_p)
{
    base_status st = BASE_OK;
    struct store_save *s = base_calloc(1, sizeof *s);

    *save_p = NULL;
    s->dir = base_strdup(dir);
    s->lock = -1;
    s->step = step;
    s->repeated = json_object();
    s->temporary = temporary_path(dir, step);
    if (step > INT64_MAX)
        TRY(base_fail(BASE_ERR_INTERNAL, "step %llu is too large", (unsigned long long)step));
    TRY(base_make_dirs(dir));
    TRY(base_remove_leftovers(dir, ".step-")); /* left by writers that were killed */
    TRY(base_remove_leftovers(dir, "best.tmp-"));
    if (mkdir(s->temporary, 0777) != 0)
        TRY(base_fail(BASE_ERR_IO, "cannot make the folder %s: %m", s->temporary));
    s->lock = base_lock(s->temporary); /* this is the only writer, so the folder still exists */
    *save_p = s;
    s = NULL;
out:
    if (s != NULL)
        free_save(s);
    return st;
}

const char *store_save_path(struct store_save *save, const char *name)
{
    size_t n = save->count;

    assert(name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL);
    assert(strcmp(name, STORE_MANIFEST) != 0);
    for (size_t i = 0; i < n; i++)
        if (strcmp(save->names[i], name) == 0)
            return save->paths[i];
    save->names = base_realloc(save->names, n + 1, sizeof *save->names);
    save->paths = base_realloc(save->paths, n + 1, sizeof *save->paths);
    save->names[n] = base_strdup(name);
    save->paths[n] = base_format("%s/%s", save->temporary, name);
    save->count++;
    return save->paths[n];
}

void store_save_after(struct store_save *save, uint64_t step)
{
    base_free(save->former);
    save->former = store_place_path(save->dir, (struct store_place){step, false});
}

bool store_save_repeat(struct store_save *save, const char *name)
{
    json_t *manifest = NULL, *files = NULL, *entry = NULL;
    char *from = base_format("%s/%s", save->former != NULL ? save->former : "", name);

    if (save->former != NULL && store_read_manifest(save->former, &manifest) == BASE_OK &&
        base_json_object(manifest, "files", &files) == BASE_OK &&
        (entry = json_object_get(files, name)) != NULL &&
        link(from, store_save_path(save, name)) == 0)
        json_object_set(save->repeated, name, entry);
    else
        entry = NULL;
    json_decref(manifest);
    base_free(from);
    return entry != NULL;
}

void store_save_abandon(struct store_save *save)
{
    if (save == NULL)
        return;
    base_ignore(base_remove_tree(save->temporary));
    free_save(save);
}

/* Syncs a finished file and adds its size and digest to `files`. */
static base_status seal_file(const char *path, const char *name, json_t *files)
{
    base_status st = BASE_OK;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    char hex[BASE_SHA256_HEX];
    struct stat info;

    if (fd < 0 || fstat(fd, &info) != 0)
        TRY(base_fail(BASE_ERR_IO, "cannot open %s: %m", path));
    if (fsync(fd) != 0)
        TRY(base_write_failed(path));
    TRY(base_sha256_file(path, hex));
    json_object_set_new(files, name,
                        json_pack("{s:I,s:s}", "bytes", (json_int_t)info.st_size, "sha256", hex));
out:
    if (fd >= 0)
        close(fd);
    return st;
}

static base_status write_manifest(struct store_save *s, const json_t *given)
{
    base_status st = BASE_OK;
    char *path = base_format("%s/%s", s->temporary, STORE_MANIFEST), *text = NULL;
    json_t *files = json_object(), *manifest = json_object();
    size_t count;

    json_object_update(files, s->repeated);
    for (size_t i = 0; i < s->count; i++)
        if (json_object_get(files, s->names[i]) == NULL)
            TRY(seal_file(s->paths[i], s->names[i], files));
    if (given != NULL)
        json_object_update(manifest, (json_t *)(uintptr_t)given);
    json_object_del(manifest, "digest");
    json_object_set_new(manifest, "schema", json_integer(STORE_SCHEMA));
    json_object_set_new(manifest, "step", json_integer((json_int_t)s->step));
    json_object_set(manifest, "files", files);
    TRY(store_manifest_text(manifest, &text, &count));
    TRY(base_file_replace(path, text, count)); /* syncs the file and the temporary folder */
out:
    json_decref(manifest);
    json_decref(files);
    base_free(text);
    base_free(path);
    return st;
}

/* Renames the temporary folder if the step is new. If step-N exists, exchanges the two, so that the
 * former checkpoint has the temporary name. On file systems that cannot exchange, such as NFS, two
 * renames do it: between them the former checkpoint is step-N.old, which readers take when there is
 * no step-N. */
static base_status make_visible(const struct store_save *s)
{
    base_status st = BASE_OK;
    char *final = store_place_path(s->dir, (struct store_place){s->step, false});
    char *old = store_place_path(s->dir, (struct store_place){s->step, true});
    struct stat info;

    if (lstat(final, &info) != 0) { /* lstat, because a dangling link is in the way, too */
        if (rename(s->temporary, final) != 0)
            TRY(base_fail(BASE_ERR_IO, "cannot make %s: %m", final));
        goto out;
    }
    if (renameat2(AT_FDCWD, s->temporary, AT_FDCWD, final, RENAME_EXCHANGE) == 0)
        goto out;
    TRY(base_remove_tree(old)); /* step-N exists, so this one has been replaced */
    if (rename(final, old) != 0)
        TRY(base_fail(BASE_ERR_IO, "cannot replace %s: %m", final));
    if (rename(s->temporary, final) != 0) {
        st = base_fail(BASE_ERR_IO, "cannot replace %s: %m", final);
        if (rename(old, final) != 0)
            base_warn("the former %s is now %s", final, old);
    }
out:
    base_free(old);
    base_free(final);
    return st;
}

/* The new checkpoint is safe by now, so a failure here is only worth a warning. */
static void remove_checkpoint(const char *dir, struct store_place place)
{
    char *path = store_place_path(dir, place), *hidden = temporary_path(dir, place.step);

    if (rename(path, hidden) != 0)
        base_warn("cannot remove the old checkpoint %s: %m", path);
    else if (base_remove_tree(hidden) != BASE_OK)
        base_warn("the old checkpoint %s is not quite gone: %s", path, base_message());
    base_free(hidden);
    base_free(path);
}

/* Removes all but the newest `keep` checkpoints up to this step. Checkpoints of later steps may be
 * all that is left of another try, or broken: they count neither as kept nor as old. */
static void prune(const char *dir, uint64_t step, unsigned keep)
{
    struct store_place *places = NULL;
    size_t count = 0, seen = 0;
    uint64_t best;
    bool marked;

    if (store_read_best(dir, &marked, &best) != BASE_OK ||
        store_list_places(dir, &places, &count) != BASE_OK) {
        base_warn("old checkpoints stay: %s", base_message());
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct store_place p = places[i];
        bool replaced = p.old && i > 0 && places[i - 1].step == p.step;
        bool surplus = keep > 0 && p.step <= step && !replaced && seen++ >= keep;

        if (replaced || (surplus && !(marked && p.step == best)))
            remove_checkpoint(dir, p);
    }
    base_free(places);
}

base_status store_save_commit(struct store_save *save, json_t *manifest, unsigned keep)
{
    base_status st = BASE_OK;

    TRY(write_manifest(save, manifest));
    TRY(make_visible(save));
    TRY(base_sync_dir(save->dir));
    if (base_remove_tree(save->temporary) != BASE_OK) /* it exists after an exchange */
        base_warn("the former checkpoint is not quite gone: %s", base_message());
    prune(save->dir, save->step, keep);
out:
    if (st != BASE_OK)
        base_ignore(base_remove_tree(save->temporary));
    free_save(save);
    return st;
}
