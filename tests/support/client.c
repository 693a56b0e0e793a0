/* SPDX-License-Identifier: MIT */
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

int support_connect(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = 30};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return fd;
}

void support_say(int fd, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);

        if (sent <= 0)
            return;
        bytes += sent;
        count -= (size_t)sent;
    }
}

void support_say_text(int fd, const char *text)
{
    support_say(fd, text, strlen(text));
}

static char *hear(int fd, const char *until)
{
    struct base_str heard = {0};
    char block[4096];
    ssize_t count;

    base_str_append(&heard, "", 0);
    while ((until == NULL || strstr(heard.text, until) == NULL) &&
           (count = recv(fd, block, sizeof block, 0)) > 0)
        base_str_append(&heard, block, (size_t)count);
    return base_str_take(&heard);
}

char *support_hear(int fd)
{
    return hear(fd, NULL);
}

char *support_hear_until(int fd, const char *text)
{
    return hear(fd, text);
}

int support_status(const char *answer)
{
    return strncmp(answer, "HTTP/1.", 7) == 0 && strlen(answer) > 12 ? atoi(answer + 9) : 0;
}

int support_ask(int port, const char *request, char **answer_p)
{
    int fd = support_connect(port), status;
    char *answer;

    support_say_text(fd, request);
    answer = support_hear(fd);
    close(fd);
    status = support_status(answer);
    if (answer_p != NULL)
        *answer_p = answer;
    else
        base_free(answer);
    return status;
}
