/* SPDX-License-Identifier: MIT */
#include "http/token.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

enum { LEAST = 16, MOST = 512 };

/* The text is not shown: it may be a token with one wrong letter. */
static base_status check(const char *text)
{
    size_t count = strlen(text);

    for (size_t i = 0; i < count; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return base_fail(BASE_ERR_USAGE, "a token is one line of printable characters");
    if (count < LEAST || count > MOST)
        return base_fail(BASE_ERR_USAGE,
                         "a token has %d to %d characters; `paceline token FILE` makes one", LEAST,
                         MOST);
    return BASE_OK;
}

static base_status read_file(int fd, char **token_p)
{
    base_status st = BASE_OK;
    char text[MOST + 3] = "";
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
    TRY(check(text));
    *token_p = base_strdup(text);
out:
    explicit_bzero(text, sizeof text);
    return st;
}

base_status http_token_find(const char *path, const char *variable, char **token_p)
{
    char *value = getenv(variable);
    base_status st = BASE_OK;
    int fd = -1;

    *token_p = NULL;
    if (path != NULL) {
        if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
            TRY(base_fail(BASE_ERR_USAGE,
                          "cannot open the token file %s: %m; `paceline token %s` makes one", path,
                          path));
        TRY(base_prefix(read_file(fd, token_p), "%s", path));
    } else if (value != NULL) {
        TRY(base_prefix(check(value), "%s", variable));
        *token_p = base_strdup(value);
    }
out:
    if (value != NULL) { /* nor shall /proc/PID/environ show it */
        explicit_bzero(value, strlen(value));
        unsetenv(variable);
    }
    if (fd >= 0)
        close(fd);
    return st;
}
