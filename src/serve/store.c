/* SPDX-License-Identifier: MIT */
#include "serve/store.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

enum { MAX_DEPTH = 4 }; /* RUN/checkpoints/step-N/FILE */

base_status serve_store_open(const char *path, struct serve_store **store_p)
{
    base_status st = BASE_OK;
    struct serve_store *store = base_calloc(1, sizeof *store);

    *store_p = NULL;
    store->path = base_strdup(path);
    store->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (store->fd < 0)
        TRY(base_fail(BASE_ERR_USAGE,
                      "the model store %s cannot be opened: %m; --store wants a "
                      "folder of runs or checkpoints",
                      path));
    *store_p = store;
    store = NULL;
out:
    serve_store_close(store);
    return st;
}

void serve_store_close(struct serve_store *store)
{
    if (store == NULL)
        return;
    if (store->fd >= 0)
        close(store->fd);
    base_free(store->path);
    base_free(store);
}

static int open_beneath(int folder, const char *name)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};

    return (int)syscall(SYS_openat2, folder, name, &how, sizeof how);
}

/* Refuses links inside a model's folder, which could lead out of the store. */
static base_status check_plain(const char *folder, int depth)
{
    base_status st = BASE_OK;
    char **names = NULL, *path = NULL;
    size_t count = 0;
    struct stat about;

    TRY(base_list_dir(folder, &names, &count));
    for (size_t i = 0; i < count; i++) {
        base_free(path);
        path = base_format("%s/%s", folder, names[i]);
        if (lstat(path, &about) != 0) /* its training may have removed a checkpoint meanwhile */
            continue;
        if (S_ISLNK(about.st_mode))
            TRY(base_fail(BASE_ERR_DATA,
                          "%s is a symbolic link; a model of the store consists of plain files",
                          path));
        if (S_ISDIR(about.st_mode) && depth < MAX_DEPTH)
            TRY(check_plain(path, depth + 1));
    }
out:
    base_free(path);
    base_names_free(names, count);
    return st;
}

static enum serve_store_fault open_named(const struct serve_store *store, const char *name,
                                         int *fd_p)
{
    *fd_p = -1;
    if (strstr(name, "://") != NULL) {
        base_ignore(base_fail(BASE_ERR_USAGE,
                              "Given URL %s is refused: models are registered from the model store "
                              "only, never from a URL; `url` is the name of a folder in it",
                              name));
        return SERVE_STORE_URL;
    }
    *fd_p = open_beneath(store->fd, name);
    if (*fd_p >= 0)
        return SERVE_STORE_FINE;
    if (errno == EXDEV || errno == ELOOP) {
        base_ignore(base_fail(BASE_ERR_USAGE,
                              "Relative path is not allowed in url: %s leads out of the model "
                              "store",
                              name));
        return SERVE_STORE_OUTSIDE;
    }
    if (errno == ENOSYS)
        base_ignore(base_fail(BASE_ERR_IO, "this system has no openat2 (Linux 5.6), without which "
                                           "no model is registered"));
    else
        base_ignore(base_fail(BASE_ERR_USAGE, "Model not found in model store: %s", name));
    return SERVE_STORE_ABSENT;
}

enum serve_store_fault serve_store_load(const struct serve_store *store, const char *name,
                                        int batch, struct serve_loaded **loaded_p)
{
    enum serve_store_fault fault;
    char *place = NULL, *label = NULL;
    base_status st;
    int fd;

    *loaded_p = NULL;
    fault = open_named(store, name, &fd);
    if (fault != SERVE_STORE_FINE)
        return fault;
    place = base_format("/proc/self/fd/%d", fd);
    label = base_format("%s/%s", store->path, name);
    st = check_plain(place, 0);
    if (st == BASE_OK)
        /* /proc is a folder without runs, so that `place` is never taken for a run's name. */
        st = serve_loaded_open(place, "/proc", batch, loaded_p);
    serve_loaded_rename(*loaded_p, place, label);
    if (st != BASE_OK)
        fault = st == BASE_ERR_MEMORY ? SERVE_STORE_MEMORY : SERVE_STORE_BAD;
    close(fd);
    base_free(label);
    base_free(place);
    return fault;
}
