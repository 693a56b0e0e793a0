/* SPDX-License-Identifier: MIT
 *
 * Files: whole-file reads with a limit, atomic replacement, folders, digests. Maps are base/map.h.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { BASE_SHA256_HEX = 65 /* with the terminating zero */, BASE_SHA256_BYTES = 32 };

/* Opens a regular file for reading; anything else is an error, and is not waited on. *fd_p is to be
 * closed unless it is -1, also on failure. */
base_status base_open_regular(const char *path, int *fd_p, size_t *size_p);

/* The whole file, with a zero after its last byte; more than `limit` bytes is an error. */
base_status base_file_read(const char *path, size_t limit, char **bytes_p, size_t *count_p);

/* Atomic: temporary file beside `path`, fsync, rename, fsync of the directory. Temporary files of
 * `path` that killed processes left are removed. */
base_status base_file_replace(const char *path, const void *bytes, size_t count);

/* The same for what comes in pieces: begin, write, then commit, which leaves the file at `path`.
 * End it always: without a commit nothing is left. */
struct base_replacement {
    char *path, *temporary; /* NULL: nothing to remove */
    int fd;
};
base_status base_replace_begin(const char *path, struct base_replacement *r);
base_status base_replace_write(struct base_replacement *r, const void *bytes, size_t count);
base_status base_replace_commit(struct base_replacement *r);
void base_replace_end(struct base_replacement *r); /* after begin, also one that failed */

/* PATH.tmp-RANDOM, a name that cannot be guessed: in a folder that others may write to, a link of a
 * known name would lead the writer elsewhere. Make it with O_EXCL or mkdir. base_free. */
char *base_temporary(const char *path);

/* "cannot write PATH: …" after a call that set errno, with the remedy where there is one. */
base_status base_write_failed(const char *path);

/* What is being made under a temporary name is locked by its maker (flock) for as long as it is at
 * work, so that what a killed one left can be told by the lock, and not by a process id, which may
 * belong to another process by now. base_lock opens and locks the file or folder; the lock ends
 * with the descriptor. -1: another process has it, it is gone, or there are no locks here. */
int base_lock(const char *path);
/* Removes what begins with `prefix` in `dir` and is not locked. */
base_status base_remove_leftovers(const char *dir, const char *prefix);

/* Where things are kept between runs: ${XDG_CACHE_HOME:-$HOME/.cache}/paceline, not made yet; NULL
 * when the environment names no place. base_free. */
char *base_cache_dir(void);

bool base_is_dir(const char *path);
bool base_exists(const char *path);
base_status base_make_dirs(const char *path);   /* like mkdir -p */
base_status base_sync_dir(const char *path);    /* fsync of a directory */
base_status base_remove_tree(const char *path); /* absent is fine; never follows a link */

/* Names in a directory, sorted bytewise, without . and .. ; free with base_names_free. */
base_status base_list_dir(const char *path, char ***names_p, size_t *count_p);
void base_names_free(char **names, size_t count);

void base_sha256(const void *bytes, size_t count, char hex[BASE_SHA256_HEX]);
void base_sha256_bytes(const void *bytes, size_t count, uint8_t digest[BASE_SHA256_BYTES]);
base_status base_sha256_file(const char *path, char hex[BASE_SHA256_HEX]);

#endif
