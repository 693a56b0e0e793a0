/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

base_status base_open_regular(const char *path, int *fd_p, size_t *size_p)
{
    struct stat info;

    /* O_NONBLOCK changes nothing for a file; a FIFO would be waited on until it has a writer. */
    *fd_p = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (*fd_p < 0)
        return base_fail(BASE_ERR_IO, "cannot open %s: %m", path);
    if (fstat(*fd_p, &info) != 0)
        return base_fail(BASE_ERR_IO, "cannot look at %s: %m", path);
    if (!S_ISREG(info.st_mode))
        return base_fail(BASE_ERR_IO, "%s is not a file", path);
    *size_p = (size_t)info.st_size;
    return BASE_OK;
}

base_status base_file_read(const char *path, size_t limit, char **bytes_p, size_t *count_p)
{
    base_status st = BASE_OK;
    char *bytes = NULL;
    size_t size = 0, done = 0;
    int fd = -1;

    *bytes_p = NULL;
    *count_p = 0;
    TRY(base_open_regular(path, &fd, &size));
    if (size > limit)
        TRY(base_fail(BASE_ERR_DATA, "%s is too large (%zu bytes, at most %zu)", path, size,
                      limit));
    TRY(base_tensor(size + 1, 1, path, &bytes));
    while (done < size) {
        ssize_t got = read(fd, bytes + done, size - done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            TRY(base_fail(BASE_ERR_IO, "cannot read %s: %m", path));
        if (got == 0)
            break;
        done += (size_t)got;
    }
    bytes[done] = '\0';
    *bytes_p = bytes;
    *count_p = done;
    bytes = NULL;
out:
    base_free(bytes);
    if (fd >= 0)
        close(fd);
    return st;
}

base_status base_write_failed(const char *path)
{
    const char *remedy = "";

    if (errno == ENOSPC || errno == EDQUOT)
        remedy = "; free some space there or choose another place";
    if (errno == EFBIG)
        remedy = "; raise the limit on the size of files (ulimit -f)";
    return base_fail(BASE_ERR_IO, "cannot write %s: %m%s", path, remedy);
}

static base_status write_all(int fd, const char *path, const void *bytes, size_t count)
{
    const char *at = bytes;

    while (count > 0) {
        ssize_t put = write(fd, at, count);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return base_write_failed(path);
        at += put;
        count -= (size_t)put;
    }
    return BASE_OK;
}

static char *parent_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (slash == NULL)
        return base_strdup(".");
    return base_strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* EWOULDBLOCK: another process has the lock, or had it and removed the file as a leftover. */
static bool lock_open(int fd)
{
    struct stat info;

    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return false;
    errno = EWOULDBLOCK;
    return fstat(fd, &info) == 0 && info.st_nlink > 0;
}

int base_lock(const char *path)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd >= 0 && lock_open(fd))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

base_status base_remove_leftovers(const char *dir, const char *prefix)
{
    base_status st = BASE_OK;
    char **names = NULL;
    size_t count = 0;

    TRY(base_list_dir(dir, &names, &count));
    for (size_t i = 0; i < count && st == BASE_OK; i++) {
        char *path = base_format("%s/%s", dir, names[i]);
        int lock = strncmp(names[i], prefix, strlen(prefix)) == 0 ? base_lock(path) : -1;

        if (lock >= 0) {
            st = base_remove_tree(path);
            close(lock);
        }
        base_free(path);
    }
out:
    base_names_free(names, count);
    return st;
}

char *base_temporary(const char *path)
{
    uint64_t random = 0;

    /* Names that are taken are refused, not followed: luck is all that a failure here costs. */
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = (uint64_t)getpid();
    return base_format("%s.tmp-%016llx", path, (unsigned long long)random);
}

/* A file PATH.tmp-…, new, open and locked; a failure to remove the leftovers of others is not ours.
 */
static base_status open_temporary(const char *path, const char *parent, char **temporary_p,
                                  int *fd_p)
{
    enum { TRIES = 8 };
    const char *slash = strrchr(path, '/');
    char *prefix = base_format("%s.tmp-", slash != NULL ? slash + 1 : path);
    base_status st = BASE_OK;

    base_ignore(base_remove_leftovers(parent, prefix));
    for (int i = 0;; i++) {
        *temporary_p = base_temporary(path);
        *fd_p = open(*temporary_p, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (*fd_p < 0)
            st = base_write_failed(path);
        if (*fd_p < 0 || lock_open(*fd_p) || errno != EWOULDBLOCK || i == TRIES)
            break; /* where there are no locks, no process removes it */
        close(*fd_p);
        base_free(*temporary_p);
    }
    base_free(prefix);
    return st;
}

base_status base_replace_begin(const char *path, struct base_replacement *r)
{
    char *parent = parent_of(path);
    base_status st;

    *r = (struct base_replacement){.path = base_strdup(path), .fd = -1};
    st = open_temporary(path, parent, &r->temporary, &r->fd);
    base_free(parent);
    return st;
}

base_status base_replace_write(struct base_replacement *r, const void *bytes, size_t count)
{
    return write_all(r->fd, r->path, bytes, count);
}

base_status base_replace_commit(struct base_replacement *r)
{
    base_status st = BASE_OK;
    char *parent = parent_of(r->path);

    if (fsync(r->fd) != 0)
        TRY(base_write_failed(r->path));
    if (rename(r->temporary, r->path) != 0)
        TRY(base_write_failed(r->path));
    base_free(r->temporary);
    r->temporary = NULL;
    TRY(base_sync_dir(parent));
out:
    base_free(parent);
    return st;
}

void base_replace_end(struct base_replacement *r)
{
    if (r->temporary != NULL)
        unlink(r->temporary);
    if (r->fd >= 0)
        close(r->fd);
    base_free(r->temporary);
    base_free(r->path);
    *r = (struct base_replacement){.fd = -1};
}

base_status base_file_replace(const char *path, const void *bytes, size_t count)
{
    base_status st = BASE_OK;
    struct base_replacement r;

    TRY(base_replace_begin(path, &r));
    TRY(base_replace_write(&r, bytes, count));
    TRY(base_replace_commit(&r));
out:
    base_replace_end(&r);
    return st;
}

char *base_cache_dir(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

    if (cache != NULL && cache[0] == '/') /* the XDG rule: a relative one is to be ignored */
        return base_format("%s/paceline", cache);
    if (home != NULL && home[0] != '\0')
        return base_format("%s/.cache/paceline", home);
    return NULL;
}

bool base_is_dir(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool base_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

base_status base_make_dirs(const char *path)
{
    char *copy = base_strdup(path);
    base_status st = BASE_OK;

    for (char *at = copy + (copy[0] == '/'); st == BASE_OK; at++) {
        char end = *at;

        if (end != '/' && end != '\0')
            continue;
        *at = '\0';
        if (mkdir(copy, 0777) != 0 && !(errno == EEXIST && base_is_dir(copy)))
            st = base_fail(BASE_ERR_IO, "cannot make the folder %s: %m", copy);
        *at = end;
        if (end == '\0')
            break;
    }
    base_free(copy);
    return st;
}

base_status base_sync_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    base_status st = BASE_OK;

    if (fd < 0 || fsync(fd) != 0)
        st = base_fail(BASE_ERR_IO, "cannot sync the folder %s: %m", path);
    if (fd >= 0)
        close(fd);
    return st;
}

base_status base_remove_tree(const char *path)
{
    base_status st = BASE_OK;
    char **names = NULL;
    size_t count = 0;
    struct stat info;

    if (lstat(path, &info) != 0) {
        if (errno != ENOENT)
            TRY(base_fail(BASE_ERR_IO, "cannot look at %s: %m", path));
        goto out;
    }
    if (!S_ISDIR(info.st_mode)) {
        if (unlink(path) != 0)
            TRY(base_fail(BASE_ERR_IO, "cannot remove %s: %m", path));
        goto out;
    }
    TRY(base_list_dir(path, &names, &count));
    for (size_t i = 0; i < count && st == BASE_OK; i++) {
        char *child = base_format("%s/%s", path, names[i]);

        st = base_remove_tree(child);
        base_free(child);
    }
    if (st == BASE_OK && rmdir(path) != 0)
        st = base_fail(BASE_ERR_IO, "cannot remove %s: %m", path);
out:
    base_names_free(names, count);
    return st;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

base_status base_list_dir(const char *path, char ***names_p, size_t *count_p)
{
    DIR *dir = opendir(path);
    char **names = NULL;
    size_t count = 0, capacity = 0;

    *names_p = NULL;
    *count_p = 0;
    if (dir == NULL)
        return base_fail(BASE_ERR_IO, "cannot list %s: %m", path);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (count == capacity) {
            capacity = capacity ? capacity * 2 : 16;
            names = base_realloc(names, capacity, sizeof *names);
        }
        names[count++] = base_strdup(entry->d_name);
    }
    closedir(dir);
    if (count > 0)
        qsort(names, count, sizeof *names, by_name);
    *names_p = names;
    *count_p = count;
    return BASE_OK;
}

void base_names_free(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        base_free(names[i]);
    base_free(names);
}

static void to_hex(const unsigned char digest[32], char hex[BASE_SHA256_HEX])
{
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

void base_sha256_bytes(const void *bytes, size_t count, uint8_t digest[BASE_SHA256_BYTES])
{
    memset(digest, 0, BASE_SHA256_BYTES);
    EVP_Digest(bytes, count, digest, NULL, EVP_sha256(), NULL);
}

void base_sha256(const void *bytes, size_t count, char hex[BASE_SHA256_HEX])
{
    uint8_t digest[BASE_SHA256_BYTES];

    base_sha256_bytes(bytes, count, digest);
    to_hex(digest, hex);
}

base_status base_sha256_file(const char *path, char hex[BASE_SHA256_HEX])
{
    base_status st = BASE_OK;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned char digest[32], chunk[1 << 16];
    size_t size;
    ssize_t got;
    int fd = -1;

    hex[0] = '\0';
    TRY(base_open_regular(path, &fd, &size));
    EVP_DigestInit_ex(context, EVP_sha256(), NULL);
    while ((got = read(fd, chunk, sizeof chunk)) > 0)
        EVP_DigestUpdate(context, chunk, (size_t)got);
    if (got < 0)
        TRY(base_fail(BASE_ERR_IO, "cannot read %s: %m", path));
    EVP_DigestFinal_ex(context, digest, NULL);
    to_hex(digest, hex);
out:
    EVP_MD_CTX_free(context);
    if (fd >= 0)
        close(fd);
    return st;
}
