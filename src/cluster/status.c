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

enum { MAX_ANSWER = 1 << 20, MAX_REQUEST = 4096, CLIENTS = 16 };

/* Seconds that a client has for its request. */
static const double ASKING = 2.0;

struct client {
    int fd; /* -1: the entry is free */
    bool asked;
    double since;
    char request[MAX_REQUEST];
    size_t length;
};

struct cluster_status {
    char *path;
    int fd;
    struct client clients[CLIENTS];
};

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

base_status cluster_status_open(const char *path, struct cluster_status **status_p)
{
    base_status st = BASE_OK;
    struct cluster_status *s = base_calloc(1, sizeof *s);
    struct sockaddr_un address;
    struct stat file;
    int folder = -1, fd = -1;

    *status_p = NULL;
    TRY(address_of(path, &address, &folder));
    if (lstat(path, &file) == 0 && S_ISSOCK(file.st_mode))
        unlink(path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || fchmod(fd, 0600) != 0 || /* the socket's file gets this mode */
        bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, CLIENTS) != 0)
        TRY(refused(path));
    s->path = base_strdup(path);
    s->fd = fd;
    for (int i = 0; i < CLIENTS; i++)
        s->clients[i].fd = -1;
    *status_p = s;
    s = NULL;
    fd = -1;
out:
    if (fd >= 0)
        close(fd);
    if (folder >= 0)
        close(folder);
    base_free(s);
    return st;
}

static void cut_off(struct client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

void cluster_status_close(struct cluster_status *s)
{
    if (s == NULL)
        return;
    for (int i = 0; i < CLIENTS; i++)
        cut_off(&s->clients[i]);
    close(s->fd);
    unlink(s->path);
    base_free(s->path);
    base_free(s);
}

/* A client that waits for its answer is not polled: it has no more to say, and if it has gone the
 * answer goes nowhere. */
int cluster_status_watch(const struct cluster_status *s, struct pollfd *fds, int room)
{
    int count = 0;
    bool has_room = false; /* for a client: one that had to wait would wake the agent in vain */

    for (int i = 0; i < CLIENTS && count < room; i++) {
        has_room |= s->clients[i].fd < 0;
        if (s->clients[i].fd >= 0 && !s->clients[i].asked)
            fds[count++] = (struct pollfd){s->clients[i].fd, POLLIN, 0};
    }
    if (has_room && count < room)
        fds[count++] = (struct pollfd){s->fd, POLLIN, 0};
    return count;
}

/* Those for which there is no room wait in the socket's queue. */
static void take_clients(struct cluster_status *s, double now)
{
    struct ucred peer;
    socklen_t length = sizeof peer;

    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = &s->clients[i];

        if (c->fd >= 0)
            continue;
        c->fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (c->fd < 0)
            return;
        c->asked = false;
        c->since = now;
        c->length = 0;
        if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 ||
            peer.uid != geteuid()) {
            base_warn("status: a process of another user (%u) was turned away", peer.uid);
            cut_off(c);
        }
    }
}

/* True once the client has said everything. */
static bool read_request(struct client *c, double now)
{
    ssize_t count;

    while (c->length < sizeof c->request) {
        count = read(c->fd, c->request + c->length, sizeof c->request - c->length);
        if (count == 0)
            return true;
        if (count < 0)
            break;
        c->length += (size_t)count;
    }
    if (c->length == sizeof c->request || errno != EAGAIN || now - c->since > ASKING)
        cut_off(c);
    return false;
}

bool cluster_status_next(struct cluster_status *s, double now, int *client_p, json_t **request_p)
{
    *request_p = NULL;
    take_clients(s, now);
    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = &s->clients[i];

        if (c->fd < 0 || c->asked || !read_request(c, now))
            continue;
        c->asked = true;
        *client_p = i;
        if (base_json_parse(c->request, c->length, request_p) == BASE_OK &&
            !json_is_object(*request_p)) {
            json_decref(*request_p);
            *request_p = NULL;
        }
        return true;
    }
    return false;
}

void cluster_status_answer(struct cluster_status *s, int client, const json_t *answer)
{
    struct client *c = &s->clients[client];
    char *text = json_dumps(answer, JSON_COMPACT | JSON_REAL_PRECISION(9));

    /* A client does not get what does not fit into the socket's buffer at once. */
    if (text != NULL && send(c->fd, text, strlen(text), MSG_NOSIGNAL) < 0 && errno != EPIPE)
        base_warn("status: %m");
    cut_off(c);
    free(text);
}

/* ---- the client ---- */

static base_status connect_to(const char *path, int *fd_p)
{
    base_status st = BASE_OK;
    struct sockaddr_un address;
    int folder = -1;

    *fd_p = -1;
    TRY(address_of(path, &address, &folder));
    *fd_p = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd_p < 0 || connect(*fd_p, (const struct sockaddr *)&address, sizeof address) != 0)
        TRY(refused(path));
out:
    if (folder >= 0)
        close(folder);
    return st;
}

/* A request is shorter than any socket's buffer. */
static base_status say_request(int fd, const char *path, const json_t *request)
{
    char *text = json_dumps(request, JSON_COMPACT);
    size_t length = text != NULL ? strlen(text) : 0;
    base_status st = BASE_OK;

    if (length == 0 || length >= MAX_REQUEST)
        st = base_fail(BASE_ERR_USAGE, "a request of %zu bytes", length);
    else if (send(fd, text, length, MSG_NOSIGNAL) != (ssize_t)length || shutdown(fd, SHUT_WR) != 0)
        st = base_fail(BASE_ERR_IO, "%s does not listen any more; is it of another user?", path);
    free(text);
    return st;
}

base_status cluster_status_ask(const char *path, const json_t *request, double deadline,
                               json_t **answer_p)
{
    base_status st = BASE_OK;
    struct base_str text = {0};
    char bytes[4096];
    ssize_t count = 1;
    int fd = -1;

    *answer_p = NULL;
    TRY(connect_to(path, &fd));
    TRY(say_request(fd, path, request));
    while (count > 0 && text.length < MAX_ANSWER) {
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
    TRY(base_prefix(base_json_parse(text.text, text.length, answer_p), "%s", path));
out:
    if (fd >= 0)
        close(fd);
    base_str_fini(&text);
    return st;
}
