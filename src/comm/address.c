/* SPDX-License-Identifier: MIT
 *
 * Numeric addresses, and the options that every connection of ours has.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "comm/comm_stream_private.h"

/* An idle connection whose peer's host is gone ends after KEEP_IDLE + KEEP_COUNT * KEEP_EVERY
 * seconds. A host that has far more to do than cores may take several seconds to answer. There is
 * no TCP_USER_TIMEOUT: it would also end connections with a peer that is alive but too busy to read
 * for so long; the tcp transport looks at acknowledgements instead. */
enum { KEEP_IDLE = 2, KEEP_EVERY = 2, KEEP_COUNT = 4 };

base_status comm_address_parse(const char *text, uint16_t port, struct comm_address *address_p)
{
    struct sockaddr_in *v4 = (void *)&address_p->at;
    struct sockaddr_in6 *v6 = (void *)&address_p->at;

    *address_p = (struct comm_address){0};
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        address_p->length = sizeof *v4;
    } else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        address_p->length = sizeof *v6;
    } else {
        return base_fail(BASE_ERR_USAGE, "'%s' is no numeric address such as 10.0.0.2 or ::1",
                         text);
    }
    return BASE_OK;
}

bool comm_address_loopback(const struct comm_address *address)
{
    const struct sockaddr_in *v4 = (const void *)&address->at;
    const struct sockaddr_in6 *v6 = (const void *)&address->at;

    if (address->at.ss_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    return address->at.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

void comm_address_text(const struct comm_address *address, char text[COMM_PEER_TEXT])
{
    const struct sockaddr_in *v4 = (const void *)&address->at;
    const struct sockaddr_in6 *v6 = (const void *)&address->at;
    char host[INET6_ADDRSTRLEN] = "?";

    if (address->at.ss_family == AF_INET) {
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        snprintf(text, COMM_PEER_TEXT, "%s:%u", host, ntohs(v4->sin_port));
    } else if (address->at.ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        snprintf(text, COMM_PEER_TEXT, "[%s]:%u", host, ntohs(v6->sin6_port));
    } else {
        snprintf(text, COMM_PEER_TEXT, "a process of this host");
    }
}

base_status comm_address_allowed(const struct comm_address *address, const char *text,
                                 const char *verb, bool has_secret)
{
    if (has_secret || comm_address_loopback(address))
        return BASE_OK;
    return base_fail(
        BASE_ERR_USAGE,
        "%s %s needs a token, the same on every host: `paceline token FILE` makes one; "
        "only loopback addresses go without",
        verb, text);
}

base_status comm_socket_new(const struct comm_address *address, int *fd_p)
{
    *fd_p = socket(address->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd_p < 0)
        return base_fail(BASE_ERR_NETWORK, "cannot make a socket: %m");
    return BASE_OK;
}

static void set(int fd, int level, int option, int value)
{
    base_ignore(setsockopt(fd, level, option, &value, sizeof value) == 0 ? BASE_OK : BASE_ERR_IO);
}

void comm_socket_tune(int fd)
{
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    /* BBR, the default of some hosts, halves the rate of short fast links. */
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", strlen("cubic")) != 0)
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", strlen("reno"));
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_EVERY);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT);
}
