/* SPDX-License-Identifier: MIT */
#include "base/secret.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static base_status read_line(int fd, char *text, size_t size)
{
    struct stat about;
    ssize_t count;

    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        return base_fail(BASE_ERR_USAGE, "not a file");
    if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return base_fail(BASE_ERR_USAGE,
                         "others may read this token: chmod 600 it, or make a new one");
    if ((count = read(fd, text, size - 1)) < 0)
        return base_fail(BASE_ERR_IO, "cannot be read: %m");
    text[count] = '\0';
    if (count > 0 && text[count - 1] == '\n')
        text[count - 1] = '\0';
    return BASE_OK;
}

static base_status read_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    base_status st;

    if (fd < 0)
        return base_fail(BASE_ERR_USAGE,
                         "cannot open the token file %s: %m; `paceline token %s` makes one", path,
                         path);
    st = base_prefix(read_line(fd, text, size), "%s", path);
    close(fd);
    return st;
}

base_status base_secret_find(const char *path, const char *variable, char *text, size_t size,
                             bool *found_p)
{
    char *value = getenv(variable);
    base_status st = BASE_OK;

    text[0] = '\0';
    if (path != NULL)
        st = read_file(path, text, size);
    else if (value != NULL)
        snprintf(text, size, "%s", value);
    *found_p = st == BASE_OK && (path != NULL || value != NULL);
    if (value != NULL) { /* nor shall /proc/PID/environ or a child show it */
        explicit_bzero(value, strlen(value));
        unsetenv(variable);
    }
    return st;
}
