/* SPDX-License-Identifier: MIT
 *
 * Finding and opening checkpoints, and marking the best one. Writing them is save.c. A checkpoint
 * counts only when its manifest matches its own digest and every file matches the manifest; when
 * the newest does not, the next older one is taken and the person is told why. Read-only but for
 * DIR/best; safe beside a writer, which makes and removes folders by renaming them.
 */
#include "store/checkpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/store_private.h"

static const char BEST[] = "best";
static const char OLD[] = ".old"; /* make_visible of save.c tells when it is used */

bool store_step_of(const char *name, uint64_t *step_p)
{
    static const char prefix[] = "step-";
    uint64_t step = 0;
    const char *at;

    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return false;
    at = name + sizeof prefix - 1;
    if (*at == '\0' || (*at == '0' && at[1] != '\0'))
        return false;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(step, 10, &step) ||
            __builtin_add_overflow(step, (uint64_t)(*at - '0'), &step))
            return false;
    *step_p = step;
    return *at == '\0';
}

static bool place_of(const char *name, struct store_place *place_p)
{
    size_t length = strlen(name), tail = sizeof OLD - 1;
    char *stem;
    bool yes;

    place_p->old = length > tail && strcmp(name + length - tail, OLD) == 0;
    stem = base_strndup(name, place_p->old ? length - tail : length);
    yes = store_step_of(stem, &place_p->step);
    base_free(stem);
    return yes;
}

char *store_place_path(const char *dir, struct store_place place)
{
    return base_format("%s/step-%llu%s", dir, (unsigned long long)place.step, place.old ? OLD : "");
}

bool store_checkpoint_is_there(const char *dir, uint64_t step)
{
    char *path = store_place_path(dir, (struct store_place){.step = step});
    bool yes = base_is_dir(path);

    base_free(path);
    return yes;
}

static int newest_first(const void *a, const void *b)
{
    const struct store_place *s = a, *t = b;

    if (s->step != t->step)
        return s->step < t->step ? 1 : -1;
    return s->old - t->old;
}

base_status store_list_places(const char *dir, struct store_place **places_p, size_t *count_p)
{
    base_status st = BASE_OK;
    struct store_place *places = NULL;
    char **names = NULL;
    size_t count = 0, found = 0;

    *places_p = NULL;
    *count_p = 0;
    TRY(base_list_dir(dir, &names, &count));
    places = base_calloc(count, sizeof *places);
    for (size_t i = 0; i < count; i++)
        found += place_of(names[i], &places[found]);
    qsort(places, found, sizeof *places, newest_first);
    *places_p = places;
    *count_p = found;
out:
    base_names_free(names, count);
    return st;
}

base_status store_mark_best(const char *dir, uint64_t step)
{
    char *path = base_format("%s/%s", dir, BEST);
    char *text = base_format("step-%llu\n", (unsigned long long)step);
    base_status st = base_file_replace(path, text, strlen(text));

    base_free(text);
    base_free(path);
    return st;
}

base_status store_read_best(const char *dir, bool *marked_p, uint64_t *step_p)
{
    base_status st = BASE_OK;
    char *path = base_format("%s/%s", dir, BEST), *text = NULL;
    size_t count;

    *marked_p = false;
    *step_p = 0;
    if (!base_exists(path))
        goto out;
    TRY(base_file_read(path, 64, &text, &count));
    if (count > 0 && text[count - 1] == '\n')
        text[count - 1] = '\0';
    if (!store_step_of(text, step_p))
        TRY(base_fail(BASE_ERR_DATA, "%s does not name a checkpoint; remove it", path));
    *marked_p = true;
out:
    base_free(text);
    base_free(path);
    return st;
}

static base_status verify_file(const char *path, const json_t *entry)
{
    base_status st = BASE_OK;
    char hex[BASE_SHA256_HEX];
    const char *digest;
    struct stat info;
    int64_t bytes;

    TRY(base_json_integer(entry, "bytes", &bytes));
    TRY(base_json_string(entry, "sha256", &digest));
    if (stat(path, &info) != 0)
        TRY(errno == ENOENT ? base_fail(BASE_ERR_DATA, "%s is missing", path)
                            : base_fail(BASE_ERR_IO, "cannot look at %s: %m", path));
    if (!S_ISREG(info.st_mode))
        TRY(base_fail(BASE_ERR_DATA, "%s is not a file", path));
    if (info.st_size != bytes)
        TRY(base_fail(BASE_ERR_DATA, "%s has %lld bytes, %lld expected", path,
                      (long long)info.st_size, (long long)bytes));
    TRY(base_sha256_file(path, hex));
    if (strcmp(hex, digest) != 0)
        TRY(base_fail(BASE_ERR_DATA, "%s does not match its digest", path));
out:
    return st;
}

base_status store_read_manifest(const char *path, json_t **manifest_p)
{
    base_status st = BASE_OK;
    char *place = base_format("%s/%s", path, STORE_MANIFEST), *text = NULL;
    size_t count;

    *manifest_p = NULL;
    TRY(base_file_read(place, STORE_MAX_MANIFEST, &text, &count));
    TRY(base_prefix(store_manifest_parse(text, count, true, manifest_p), "%s", place));
out:
    base_free(text);
    base_free(place);
    return st;
}

static base_status verify(const char *path, json_t **manifest_p)
{
    base_status st = BASE_OK;
    json_t *manifest = NULL, *files, *entry;
    const char *name;

    *manifest_p = NULL;
    TRY(store_read_manifest(path, &manifest));
    TRY(base_json_object(manifest, "files", &files));
    json_object_foreach(files, name, entry)
    {
        char *file = base_format("%s/%s", path, name);

        st = verify_file(file, entry);
        base_free(file);
        TRY(st);
    }
    *manifest_p = manifest;
    manifest = NULL;
out:
    json_decref(manifest);
    return st;
}

static base_status open_one(const char *path, struct store_checkpoint *checkpoint_p)
{
    base_status st = BASE_OK;
    const char *slash = strrchr(path, '/');
    json_t *manifest = NULL;
    uint64_t named;
    int64_t step;

    TRY(verify(path, &manifest));
    TRY(base_json_integer(manifest, "step", &step));
    if (store_step_of(slash == NULL ? path : slash + 1, &named) && named != (uint64_t)step)
        TRY(base_fail(BASE_ERR_DATA, "%s holds step %lld; give the folder its own name back", path,
                      (long long)step));
    *checkpoint_p = (struct store_checkpoint){base_strdup(path), (uint64_t)step, manifest};
    manifest = NULL;
out:
    json_decref(manifest);
    return st;
}

static base_status open_newest(const char *dir, struct store_checkpoint *checkpoint_p)
{
    base_status st = BASE_OK;
    struct store_place *places = NULL;
    size_t count = 0;

    TRY(store_list_places(dir, &places, &count));
    if (count == 0)
        TRY(base_fail(BASE_ERR_IO, "there is no checkpoint (step-N) in %s", dir));
    for (size_t i = 0; i < count; i++) {
        char *path = store_place_path(dir, places[i]);

        st = open_one(path, checkpoint_p);
        if (st != BASE_OK)
            base_warn("%s is passed over: %s", path, base_message());
        base_free(path);
        if (st == BASE_OK)
            goto out;
    }
    TRY(base_fail(BASE_ERR_DATA,
                  "none of the %zu checkpoints in %s is whole; start again without it", count,
                  dir));
out:
    base_free(places);
    return st;
}

static base_status open_best(const char *dir, struct store_checkpoint *checkpoint_p)
{
    base_status st = BASE_OK;
    struct store_place place = {0};
    char *path = NULL;
    bool marked;

    TRY(store_read_best(dir, &marked, &place.step));
    if (!marked)
        TRY(base_fail(BASE_ERR_IO, "no checkpoint in %s is marked best; take the newest", dir));
    path = store_place_path(dir, place);
    TRY(open_one(path, checkpoint_p));
out:
    base_free(path);
    return st;
}

/* True if the folder itself is a checkpoint: it is called step-N (and is not a run of that name),
 * or has another name (a copy) and contains a manifest. */
static bool is_checkpoint(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *manifest = base_format("%s/%s", path, STORE_MANIFEST);
    char *inside = base_format("%s/checkpoints", path);
    uint64_t step;
    bool named = store_step_of(slash == NULL ? path : slash + 1, &step) && !base_is_dir(inside);
    bool yes = named || base_exists(manifest);

    base_free(inside);
    base_free(manifest);
    return yes;
}

base_status store_checkpoint_open(const char *path, bool best,
                                  struct store_checkpoint *checkpoint_p)
{
    base_status st = BASE_OK;
    size_t length = strlen(path);
    char *place, *dir = NULL;

    while (length > 1 && path[length - 1] == '/')
        length--;
    place = base_strndup(path, length);
    *checkpoint_p = (struct store_checkpoint){0};
    if (!base_is_dir(place))
        TRY(base_fail(BASE_ERR_IO, "there is no checkpoint at %s: %s", place,
                      base_exists(place) ? "it is not a folder" : "no such folder"));
    if (is_checkpoint(place)) {
        if (best)
            TRY(base_fail(BASE_ERR_USAGE,
                          "%s is one checkpoint; the best is looked for in a run's folder", place));
        TRY(open_one(place, checkpoint_p));
        goto out;
    }
    dir = base_format("%s/checkpoints", place);
    if (!base_is_dir(dir)) {
        base_free(dir);
        dir = base_strdup(place);
    }
    TRY(best ? open_best(dir, checkpoint_p) : open_newest(dir, checkpoint_p));
out:
    base_free(dir);
    base_free(place);
    return st;
}

base_status store_checkpoint_file(const struct store_checkpoint *checkpoint, const char *name,
                                  char **path_p)
{
    *path_p = NULL;
    if (json_object_get(json_object_get(checkpoint->manifest, "files"), name) == NULL)
        return base_fail(BASE_ERR_DATA,
                         "%s/" STORE_MANIFEST " does not list %s in \"files\", so that file cannot "
                         "be verified",
                         checkpoint->path, name);
    *path_p = base_format("%s/%s", checkpoint->path, name);
    return BASE_OK;
}

bool store_has_checkpoint(const char *dir)
{
    struct store_place *places = NULL;
    size_t count = 0;

    /* A folder that cannot be read may hold some: opening one will say what is wrong. */
    if (store_list_places(dir, &places, &count) != BASE_OK)
        return base_exists(dir);
    base_free(places);
    return count > 0;
}

char *store_newest_digest(const char *dir)
{
    struct store_place *places = NULL;
    json_t *manifest = NULL;
    char *path = NULL, *digest = NULL;
    const char *text;
    size_t count = 0;
    int64_t step;

    if (store_list_places(dir, &places, &count) == BASE_OK && count > 0) {
        path = store_place_path(dir, places[0]);
        if (store_read_manifest(path, &manifest) == BASE_OK &&
            base_json_integer(manifest, "step", &step) == BASE_OK &&
            places[0].step == (uint64_t)step &&
            base_json_string(manifest, "digest", &text) == BASE_OK)
            digest = base_strdup(text);
    }
    json_decref(manifest);
    base_free(path);
    base_free(places);
    return digest;
}

void store_checkpoint_close(struct store_checkpoint *checkpoint)
{
    base_free(checkpoint->path);
    json_decref(checkpoint->manifest);
    *checkpoint = (struct store_checkpoint){0};
}
