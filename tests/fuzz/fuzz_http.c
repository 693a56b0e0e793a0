/* covers: src/http/admit.c */
/* SPDX-License-Identifier: MIT
 *
 * A whole server: every input is what one client sends before it stops sending. The server may
 * answer it or not; it must be there for the next one, and hold nothing of it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "http/multipart.h"
#include "support/server.h"

static int port;

static void echo(void *context, struct http_request *request)
{
    const char *type = http_header(request, "Content-Type");
    const char *name = http_wildcard(request, 0);
    struct http_part part = {0};
    size_t count;
    const char *body = http_body(request, &count);
    char *text;

    (void)context;
    if (http_is_multipart(type) &&
        http_multipart_find(type, body, count, "data", &part) != BASE_OK) {
        http_refuse(request, 400, base_message());
        return;
    }
    text = base_format("%s %s %s %zu %s", http_method(request), http_segment(request, 0),
                       name != NULL ? name : "-", count, part.name);
    http_add_header(request, "X-Echo", "yes");
    http_answer(request, 200, "text/plain", text, strlen(text));
}

static const struct http_route routes[] = {
    {"GET", "/ping", echo, .open = true},
    {"POST|PUT", "/predictions/{name}", echo},
    {"POST|PUT", "/predictions/{name}/{version}", echo},
    {"POST", "/v1/{name}:predict", echo},
    {0},
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct http_setup setup = http_setup_defaults;

    (void)argc;
    (void)argv;
    signal(SIGPIPE, SIG_IGN);
    setup.body_limit = 2000;
    setup.head_seconds = setup.idle_seconds = 0.02;
    port = http_server_port(support_serve(setup, routes));
    return 0;
}

static void fail(const char *what)
{
    fprintf(stderr, "fuzz_http: %s: %m\n", what);
    abort();
}

/* Every client has an address of its own, 127.x.y.z: of one address the ports would be used up by
 * connections that ended within the last minute. */
static int connect_anew(void)
{
    static uint32_t clients;
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr =
                                   htonl(INADDR_LOOPBACK + 256 + clients++ % (1 << 20))};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
    if (fd < 0 || bind(fd, (struct sockaddr *)&from, sizeof from) != 0)
        fail("no socket");
    while (connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        if (errno != EINTR) /* by libFuzzer's clock */
            fail("no connection to the server");
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct linger at_once = {.l_onoff = 1}; /* no port is kept by a connection that is over */
    char heard[4096];
    int fd = connect_anew();

    while (count > 0) {
        ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);

        if (sent <= 0)
            break;
        bytes += sent;
        count -= (size_t)sent;
    }
    /* libmicrohttpd does not see an end that comes together with the last bytes, and would wait for
     * its deadline: it gets a moment to read them. */
    if (ppoll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1,
              &(struct timespec){.tv_nsec = 300 * 1000}, NULL) >= 0)
        shutdown(fd, SHUT_WR);
    while (recv(fd, heard, sizeof heard, 0) > 0)
        ;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
    return 0;
}
