/* SPDX-License-Identifier: MIT */
#include "support/http.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"

struct test_http {
    const struct test_route *routes;
    int listener, stop; /* stop: an eventfd that is readable once the server should end */
    int port;
    pthread_t thread;
    sem_t silent;
};

/* Readable `fd` before the server is to end? */
static bool wait_readable(const struct test_http *server, int fd)
{
    struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = server->stop, .events = POLLIN}};

    poll(fds, 2, -1);
    return fds[1].revents == 0;
}

static void send_all(int fd, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);

        if (sent <= 0)
            return;
        bytes += sent;
        count -= (size_t)sent;
    }
}

static const struct test_route *find(const struct test_http *server, const char *path)
{
    for (const struct test_route *route = server->routes; route->path != NULL; route++)
        if (strcmp(route->path, path) == 0)
            return route;
    return NULL;
}

static void answer(struct test_http *server, int fd)
{
    char request[4096] = "", path[256] = "", head[512], byte;
    size_t got = 0;
    const struct test_route *route;

    while (strstr(request, "\r\n\r\n") == NULL && got < sizeof request - 1) {
        ssize_t count =
            wait_readable(server, fd) ? recv(fd, request + got, sizeof request - 1 - got, 0) : 0;

        if (count <= 0)
            return;
        got += (size_t)count;
        request[got] = '\0';
    }
    sscanf(request, "GET %255s", path);
    route = find(server, path);
    snprintf(head, sizeof head, "HTTP/1.1 %s\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n",
             route == NULL           ? "404 Not Found"
             : route->header != NULL ? "302 Found"
                                     : "200 OK",
             route != NULL && route->header != NULL ? route->header : "",
             route != NULL ? route->count + route->more : 0);
    send_all(fd, head, strlen(head));
    if (route != NULL)
        send_all(fd, route->bytes, route->count);
    if (route != NULL && route->silent) {
        sem_post(&server->silent);
        while (wait_readable(server, fd) && recv(fd, &byte, 1, 0) > 0)
            ;
    }
}

static void *serve(void *state)
{
    struct test_http *server = state;

    while (wait_readable(server, server->listener)) {
        int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0)
            continue;
        answer(server, fd);
        close(fd);
    }
    return NULL;
}

struct test_http *test_http_start(const struct test_route *routes)
{
    struct test_http *server = base_calloc(1, sizeof *server);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;

    server->routes = routes;
    server->stop = eventfd(0, EFD_CLOEXEC);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sem_init(&server->silent, 0, 0) != 0 ||
        bind(server->listener, (struct sockaddr *)&address, length) != 0 ||
        listen(server->listener, 16) != 0 ||
        getsockname(server->listener, (struct sockaddr *)&address, &length) != 0 ||
        pthread_create(&server->thread, NULL, serve, server) != 0)
        abort();
    server->port = ntohs(address.sin_port);
    return server;
}

void test_http_stop(struct test_http *server)
{
    eventfd_write(server->stop, 1);
    pthread_join(server->thread, NULL);
    close(server->listener);
    close(server->stop);
    sem_destroy(&server->silent);
    base_free(server);
}

int test_http_port(const struct test_http *server)
{
    return server->port;
}

void test_http_wait_silent(struct test_http *server)
{
    sem_wait(&server->silent);
}
