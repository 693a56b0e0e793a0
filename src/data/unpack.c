/* SPDX-License-Identifier: MIT
 *
 * From an archive to the files of a set: only files that the set's row names are written, under
 * the row's names, so that nothing in an archive decides where bytes go. Each file is new and
 * synced before it counts. Owns the open file of the moment. One thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "data/data_get_private.h"

struct unpack {
    const struct data_known *set;
    const char *inside, *folder;
    FILE *file;
    const char *name; /* of the open file */
    bool seen[DATA_KNOWN_MAX_FILES];
};

base_status data_entry_check(const char *entry)
{
    const char *part = entry;

    for (const char *at = entry; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == '\\' || *at == 0x7f)
            return base_fail(BASE_ERR_DATA, "the archive has an entry with a forbidden character");
    if (entry[0] == '/' || entry[0] == '\0')
        return base_fail(BASE_ERR_DATA, "the archive has an entry '%s' that is no relative path",
                         entry);
    for (;;) {
        size_t length = strcspn(part, "/");

        if (length == 2 && memcmp(part, "..", 2) == 0)
            return base_fail(BASE_ERR_DATA,
                             "the archive has an entry '%s' that would leave its folder", entry);
        if (part[length] == '\0')
            return BASE_OK;
        part += length + 1;
    }
}

static base_status open_file(struct unpack *u, size_t index)
{
    const char *name = u->set->files[index].name;
    char *path;

    if (u->seen[index])
        return base_fail(BASE_ERR_DATA, "the archive has %s twice", name);
    path = base_format("%s/%s", u->folder, name);
    u->seen[index] = true;
    u->name = name;
    u->file = fopen(path, "wxe");
    base_free(path);
    if (u->file == NULL)
        return base_fail(BASE_ERR_IO, "cannot write %s: %m", name);
    return BASE_OK;
}

static base_status begin(void *state, const char *entry, bool *wanted_p)
{
    struct unpack *u = state;
    size_t prefix = strlen(u->inside);

    *wanted_p = false;
    if (strncmp(entry, u->inside, prefix) != 0)
        return BASE_OK;
    for (size_t i = 0; u->set->files[i].name != NULL; i++) {
        if (strcmp(entry + prefix, u->set->files[i].name) == 0) {
            *wanted_p = true;
            return open_file(u, i);
        }
    }
    return BASE_OK;
}

static base_status put(void *state, const uint8_t *bytes, size_t count)
{
    struct unpack *u = state;

    if (fwrite(bytes, 1, count, u->file) != count)
        return base_fail(BASE_ERR_IO, "cannot write %s: %m", u->name);
    return BASE_OK;
}

static base_status end(void *state)
{
    struct unpack *u = state;
    bool good = fflush(u->file) == 0 && fsync(fileno(u->file)) == 0;
    int why = errno;

    if (fclose(u->file) != 0)
        good = false;
    u->file = NULL;
    if (!good) {
        errno = why;
        return base_fail(BASE_ERR_IO, "cannot write %s: %m", u->name);
    }
    return BASE_OK;
}

static base_status unpack_tar(struct base_map map, uint64_t limit, const struct data_sink *sink)
{
    base_status st = BASE_OK;
    struct data_inflate stream;

    TRY(data_inflate_init(&stream, DATA_INFLATE_GZIP, base_cursor_of(map.bytes, map.count), limit));
    st = data_tar_read((struct data_input){&stream, data_inflate_read}, sink);
    data_inflate_fini(&stream);
out:
    return st;
}

static base_status unpack_gz(struct base_map map, uint64_t limit, const char *file,
                             const struct data_sink *sink)
{
    base_status st = BASE_OK;
    struct data_inflate stream;
    bool wanted = false, open = false;
    uint8_t chunk[64 * 1024];
    size_t got = 0;

    TRY(data_inflate_init(&stream, DATA_INFLATE_GZIP, base_cursor_of(map.bytes, map.count), limit));
    open = true;
    TRY(sink->begin(sink->state, file, &wanted));
    do {
        TRY(data_inflate_read(&stream, chunk, sizeof chunk, &got));
        TRY(sink->bytes(sink->state, chunk, got));
    } while (got > 0);
    TRY(sink->end(sink->state));
out:
    if (open)
        data_inflate_fini(&stream);
    return st;
}

base_status data_unpack(const struct data_known *set, const struct data_from *from,
                        const char *file, const char *path, const char *folder)
{
    base_status st = BASE_OK;
    struct unpack u = {.set = set, .inside = from->inside, .folder = folder};
    struct data_sink sink = {&u, begin, put, end};
    struct base_map map = {0};

    TRY(base_map_open(path, &map));
    if (from->pack == DATA_PACK_TAR_GZ)
        TRY(unpack_tar(map, set->limit, &sink));
    else if (from->pack == DATA_PACK_ZIP)
        TRY(data_zip_read(map.bytes, map.count, set->limit, &sink));
    else
        TRY(unpack_gz(map, set->limit, file, &sink));
    for (size_t i = 0; from->pack != DATA_PACK_GZ && set->files[i].name != NULL; i++)
        if (!u.seen[i])
            TRY(base_fail(BASE_ERR_DATA, "the archive lacks %s%s", from->inside,
                          set->files[i].name));
out:
    if (u.file != NULL)
        fclose(u.file);
    base_map_close(&map);
    return st;
}
