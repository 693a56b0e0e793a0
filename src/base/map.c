/* SPDX-License-Identifier: MIT */
#include "base/map.h"

#include <assert.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

/* Where a copy that this thread makes goes on when its bytes are gone. */
static _Thread_local sigjmp_buf *volatile way_out;

/* The jump does not return from the handler, so the signals that were blocked for it are freed. */
static void on_bus_error(int signal_number, siginfo_t *info, void *context)
{
    (void)info;
    if (way_out != NULL) {
        pthread_sigmask(SIG_SETMASK, &((const ucontext_t *)context)->uc_sigmask, NULL);
        siglongjmp(*way_out, 1);
    }
    signal(signal_number, SIG_DFL); /* of no copy: it ends the process, as it would have */
    raise(signal_number);
}

static void catch_bus_errors(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};

    sigaction(SIGBUS, &action, NULL);
}

base_status base_map_open(const char *path, struct base_map *map_p)
{
    base_status st = BASE_OK;
    struct stat info;
    size_t size = 0;
    void *bytes;
    int fd = -1;

    *map_p = (struct base_map){0};
    catch_bus_errors();
    TRY(base_open_regular(path, &fd, &size));
    if (fstat(fd, &info) != 0)
        TRY(base_fail(BASE_ERR_IO, "cannot look at %s: %m", path));
    map_p->owner = info.st_uid;
    map_p->mode = info.st_mode;
    if (size == 0)
        goto out;
    bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        TRY(base_fail(BASE_ERR_IO, "cannot map %s: %m", path));
    map_p->bytes = bytes;
    map_p->count = size;
    map_p->path = base_strdup(path);
out:
    if (fd >= 0)
        close(fd);
    return st;
}

void base_map_close(struct base_map *map)
{
    if (map->bytes != NULL)
        munmap((void *)(uintptr_t)map->bytes, map->count);
    base_free(map->path);
    *map = (struct base_map){0};
}

base_status base_map_copy(const struct base_map *map, size_t from, size_t count, void *to)
{
    sigjmp_buf here;

    assert(from <= map->count && count <= map->count - from);
    if (sigsetjmp(here, 0) != 0) {
        way_out = NULL;
        return base_fail(BASE_ERR_DATA, "%s was cut short while it was in use", map->path);
    }
    way_out = &here;
    memcpy(to, map->bytes + from, count);
    way_out = NULL;
    return BASE_OK;
}
