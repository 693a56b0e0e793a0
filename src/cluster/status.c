/* SPDX-License-Identifier: MIT */
#include "cluster/status.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

enum { MAX_STATUS = 1 << 20 };

/* Addresses of Unix sockets are short. A longer path is written with its folder's descriptor, which
 * must stay open until the address was used. */
static base_status address_of(const char *path, struct sockaddr_un *address_p, int *folder_p)
{
    const char *slash = strrchr(path, '/');
    char *folder;

    *folder_p = -1;
    *address_p = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) < sizeof address_p->sun_path) {
        memcpy(address_p->sun_path, path, strlen(path) + 1);
        return BASE_OK;
    }
    folder = slash != NULL ? base_strndup(path, (size_t)(slash - path)) : NULL;
    *folder_p = folder != NULL ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    base_free(folder);
    if (*folder_p < 0 ||
        snprintf(address_p->sun_path, sizeof address_p->sun_path, "/proc/self/fd/%d/%s", *folder_p,
                 slash + 1) >= (int)sizeof address_p->sun_path)
        return base_fail(BASE_ERR_USAGE, "%s is too long for a socket", path);
    return BASE_OK;
}

static base_status refused(const char *path)
{
    if (errno == ENOENT || errno == ECONNREFUSED)
        return base_fail(BASE_ERR_USAGE, "nothing is running at %s", path);
    return base_fail(BASE_ERR_IO, "cannot use the socket %s: %m", path);
}

base_status cluster_status_listen(const char *path, int *fd_p)
{
    base_status st = BASE_OK;
    struct sockaddr_un address;
    struct stat file;
    int folder = -1, fd = -1;

    *fd_p = -1;
    TRY(address_of(path, &address, &folder));
    if (lstat(path, &file) == 0 && S_ISSOCK(file.st_mode))
        unlink(path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || fchmod(fd, 0600) != 0 || /* the socket's file gets this mode */
        bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 16) != 0)
        TRY(refused(path));
    *fd_p = fd;
    fd = -1;
out:
    if (fd >= 0)
        close(fd);
    if (folder >= 0)
        close(folder);
    return st;
}

void cluster_status_answer(int fd, const json_t *status)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    char *text = NULL;
    int client;

    while ((client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 ||
            peer.uid != geteuid()) {
            base_warn("status: a process of another user (%u) was turned away", peer.uid);
        } else {
            if (text == NULL)
                text = json_dumps(status, JSON_COMPACT | JSON_REAL_PRECISION(9));
            /* A client does not get what does not fit into the socket's buffer at once. */
            if (text != NULL && send(client, text, strlen(text), MSG_NOSIGNAL) < 0)
                base_warn("status: %m");
        }
        close(client);
    }
    free(text);
}

void cluster_status_close(const char *path, int fd)
{
    if (fd < 0)
        return;
    close(fd);
    unlink(path);
}

base_status cluster_status_ask(const char *path, double deadline, json_t **status_p)
{
    base_status st = BASE_OK;
    struct sockaddr_un address;
    struct base_str text = {0};
    char bytes[4096];
    ssize_t count = 1;
    int folder = -1, fd = -1;

    *status_p = NULL;
    TRY(address_of(path, &address, &folder));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
        TRY(refused(path));
    while (count > 0 && text.length < MAX_STATUS) {
        double left = deadline - base_now();
        struct pollfd poller = {.fd = fd, .events = POLLIN};

        if (left <= 0 || poll(&poller, 1, 1 + (int)(1e3 * left)) == 0)
            TRY(base_fail(BASE_ERR_TIMEOUT, "%s does not answer", path));
        count = read(fd, bytes, sizeof bytes);
        if (count > 0)
            base_str_append(&text, bytes, (size_t)count);
    }
    if (text.length == 0)
        TRY(base_fail(BASE_ERR_IO, "%s does not answer; is it of another user?", path));
    TRY(base_prefix(base_json_parse(text.text, text.length, status_p), "%s", path));
out:
    if (fd >= 0)
        close(fd);
    if (folder >= 0)
        close(folder);
    base_str_fini(&text);
    return st;
}
