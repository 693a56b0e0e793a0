/* SPDX-License-Identifier: MIT
 *
 * The listening socket, made here and not by libmicrohttpd, so that what is wrong can be told.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "http/http_private.h"

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static bool parse_address(const char *host, int port, union address *a, socklen_t *length)
{
    host = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    *a = (union address){0};
    if (inet_pton(AF_INET, host, &a->v4.sin_addr) == 1) {
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = htons((uint16_t)port);
        *length = sizeof a->v4;
        return true;
    }
    a->v6.sin6_family = AF_INET6;
    a->v6.sin6_port = htons((uint16_t)port);
    *length = sizeof a->v6;
    return inet_pton(AF_INET6, host, &a->v6.sin6_addr) == 1;
}

static bool is_loopback(const union address *a)
{
    if (a->any.sa_family == AF_INET)
        return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

bool http_is_loopback(const char *host)
{
    union address a;
    socklen_t length;

    return parse_address(host, 0, &a, &length) && is_loopback(&a);
}

static base_status refused(const char *host, int port)
{
    if (errno == EADDRINUSE)
        return base_fail(BASE_ERR_IO,
                         "port %d of %s is in use by another program; choose another port, or 0 "
                         "for any that is free",
                         port, host);
    if (errno == EACCES)
        return base_fail(BASE_ERR_IO, "port %d of %s needs more rights; ports from 1024 on do not",
                         port, host);
    if (errno == EADDRNOTAVAIL)
        return base_fail(BASE_ERR_USAGE, "this machine has no address %s", host);
    return base_fail(BASE_ERR_IO, "cannot listen on port %d of %s: %m", port, host);
}

base_status http_listen(const char *host, int port, int *fd_p, int *port_p, bool *loopback_p)
{
    base_status st = BASE_OK;
    union address a;
    socklen_t length;
    int fd = -1, yes = 1;

    *fd_p = -1;
    if (!parse_address(host, port, &a, &length))
        TRY(base_fail(BASE_ERR_USAGE, "'%s' is no address; it would be 127.0.0.1, ::1 or 0.0.0.0",
                      host));
    fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        TRY(base_fail(BASE_ERR_IO, "no socket for %s: %m", host));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, &a.any, length) != 0 || listen(fd, SOMAXCONN) != 0)
        TRY(refused(host, port));
    *loopback_p = is_loopback(&a);
    if (getsockname(fd, &a.any, &length) != 0)
        TRY(refused(host, port));
    *port_p = ntohs(a.any.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
    *fd_p = fd;
    fd = -1;
out:
    if (fd >= 0)
        close(fd);
    return st;
}
