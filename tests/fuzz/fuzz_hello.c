/* covers: src/comm/hello.c src/comm/frame.c */
/* SPDX-License-Identifier: MIT
 *
 * The first bytes of a connection, read as the listener and as the connecting side read them;
 * checksums are not compared. The first byte says where they arrive in two parts. A hello that is
 * accepted must survive being sent and read again.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/comm_stream_private.h"

static void open_pair(struct comm_stream **stream, int *raw)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0 || comm_stream_of(fds[0], stream) != BASE_OK)
        abort();
    *raw = fds[1];
}

static void send_again(const struct comm_hello *hello)
{
    struct comm_greeting out, in = {0};
    struct comm_stream *a, *b;
    struct comm_hello again;
    bool written = false, read = false;
    int raw;

    open_pair(&a, &raw);
    if (comm_stream_of(raw, &b) != BASE_OK)
        abort();
    comm_greeting_hello(&out, hello, false);
    if (comm_greeting_write(&out, a, &written) != BASE_OK || !written ||
        comm_greeting_read(&in, b, &read) != BASE_OK || !read ||
        comm_greeting_to_hello(&in, false, &again) != BASE_OK ||
        memcmp(&again, hello, sizeof again) != 0)
        abort();
    comm_greeting_welcome(&out);
    out.moved = out.count;
    if (comm_greeting_is_welcome(&out) != BASE_OK)
        abort();
    comm_stream_close(a);
    comm_stream_close(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct comm_greeting greeting = {0};
    struct comm_stream *stream;
    struct comm_hello hello;
    bool done = false;
    size_t cut;
    int raw;

    if (count < 1 || count > 65536)
        return 0;
    open_pair(&stream, &raw);
    cut = 1 + (count - 1) * bytes[0] / 255;
    if (write(raw, bytes + 1, cut - 1) != (ssize_t)(cut - 1))
        abort();
    if (comm_greeting_read(&greeting, stream, &done) == BASE_OK && !done &&
        write(raw, bytes + cut, count - cut) == (ssize_t)(count - cut))
        base_ignore(comm_greeting_read(&greeting, stream, &done));
    if (done && comm_greeting_to_hello(&greeting, false, &hello) == BASE_OK)
        send_again(&hello);
    if (done)
        base_ignore(comm_greeting_is_welcome(&greeting));
    close(raw);
    comm_stream_close(stream);
    return 0;
}
