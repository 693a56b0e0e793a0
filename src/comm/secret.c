/* SPDX-License-Identifier: MIT */
#include "comm/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/secret.h"

static const char prefix[] = "pl1-";

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
    return base_fail(
        BASE_ERR_USAGE,
        "this is no token, which is %s and %d digits 0-9a-f; `paceline token` makes one", prefix,
        2 * COMM_SECRET_BYTES);
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
    static const char variable[] = "PACELINE_TOKEN";
    char text[COMM_TOKEN_TEXT + 2];
    base_status st = BASE_OK;

    TRY(base_secret_find(path, variable, text, sizeof text, found_p));
    if (*found_p)
        st = base_prefix(comm_secret_parse(text, secret_p), "%s", path != NULL ? path : variable);
    *found_p = *found_p && st == BASE_OK;
out:
    explicit_bzero(text, sizeof text);
    return st;
}
