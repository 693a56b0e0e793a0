/* SPDX-License-Identifier: MIT */
#include "comm/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char prefix[] = "pl1-";
static const char remedy[] = "`paceline token` makes one";

base_status comm_secret_new(struct comm_secret *secret_p)
{
    if (getrandom(secret_p->key, sizeof secret_p->key, 0) != sizeof secret_p->key)
        return base_fail(BASE_ERR_IO, "the system gives no random bytes: %m");
    return BASE_OK;
}

void comm_secret_text(const struct comm_secret *secret, char token[COMM_TOKEN_TEXT])
{
    char *at = token + snprintf(token, COMM_TOKEN_TEXT, "%s", prefix);

    for (int i = 0; i < COMM_SECRET_BYTES; i++)
        at += snprintf(at, 3, "%02x", secret->key[i]);
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

base_status comm_secret_parse(const char *token, struct comm_secret *secret_p)
{
    const size_t start = sizeof prefix - 1;
    bool good = strlen(token) == COMM_TOKEN_TEXT - 1 && strncmp(token, prefix, start) == 0;

    for (int i = 0; good && i < COMM_SECRET_BYTES; i++) {
        int high = digit(token[start + 2 * (size_t)i]),
            low = digit(token[start + 2 * (size_t)i + 1]);

        good = high >= 0 && low >= 0;
        secret_p->key[i] = (uint8_t)(16 * high + low);
    }
    if (good)
        return BASE_OK;
    explicit_bzero(secret_p, sizeof *secret_p);
    /* The text is not shown: it may be a token with one wrong letter. */
    return base_fail(BASE_ERR_USAGE, "this is no token, which is %s and %d digits 0-9a-f; %s",
                     prefix, 2 * COMM_SECRET_BYTES, remedy);
}

static base_status read_token(int fd, struct comm_secret *secret_p)
{
    char text[COMM_TOKEN_TEXT + 2] = "";
    base_status st = BASE_OK;
    struct stat about;
    ssize_t count;

    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        TRY(base_fail(BASE_ERR_USAGE, "not a file"));
    if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        TRY(base_fail(BASE_ERR_USAGE,
                      "others may read this token: chmod 600 it, or make a new one"));
    if ((count = read(fd, text, sizeof text - 1)) < 0)
        TRY(base_fail(BASE_ERR_IO, "cannot be read: %m"));
    text[count] = '\0';
    if (count > 0 && text[count - 1] == '\n')
        text[count - 1] = '\0';
    TRY(comm_secret_parse(text, secret_p));
out:
    explicit_bzero(text, sizeof text);
    return st;
}

base_status comm_secret_load(const char *path, struct comm_secret *secret_p)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    base_status st;

    if (fd < 0)
        return base_fail(BASE_ERR_USAGE, "cannot open the token file %s: %m; %s", path, remedy);
    st = base_prefix(read_token(fd, secret_p), "%s", path);
    close(fd);
    return st;
}

base_status comm_secret_save(const struct comm_secret *secret, const char *path)
{
    char text[COMM_TOKEN_TEXT];
    base_status st = BASE_OK;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);

    comm_secret_text(secret, text);
    text[sizeof text - 1] = '\n';
    if (fd < 0)
        st = base_fail(errno == EEXIST ? BASE_ERR_USAGE : BASE_ERR_IO, "cannot write %s: %m", path);
    else if (write(fd, text, sizeof text) != sizeof text || fsync(fd) != 0)
        st = base_fail(BASE_ERR_IO, "cannot write %s: %m", path);
    if (fd >= 0)
        close(fd);
    explicit_bzero(text, sizeof text);
    return st;
}

base_status comm_secret_find(const char *path, struct comm_secret *secret_p, bool *found_p)
{
    char *token = getenv("PACELINE_TOKEN");
    base_status st = BASE_OK;

    *found_p = false;
    if (path != NULL)
        st = comm_secret_load(path, secret_p);
    else if (token != NULL)
        st = base_prefix(comm_secret_parse(token, secret_p), "PACELINE_TOKEN");
    *found_p = st == BASE_OK && (path != NULL || token != NULL);
    if (token != NULL) { /* nor shall /proc/PID/environ or a child show it */
        explicit_bzero(token, strlen(token));
        unsetenv("PACELINE_TOKEN");
    }
    return st;
}
