/* SPDX-License-Identifier: MIT
 *
 * Reading and writing of a connected socket without ever blocking or raising SIGPIPE. TLS is
 * comm/tls.c's business; making connections is that of connect.c and listener.c.
 */
#include "comm/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <math.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/comm_stream_private.h"

base_status comm_stream_of(int fd, struct comm_stream **stream_p)
{
    struct comm_address address = {.length = sizeof address.at};
    struct comm_stream *s;

    *stream_p = NULL;
    if (getpeername(fd, (struct sockaddr *)&address.at, &address.length) != 0)
        return base_fail(BASE_ERR_PEER_LOST, "descriptor %d is not connected: %m", fd);
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return base_fail(BASE_ERR_IO, "cannot set up a connection: %m");
    s = base_calloc(1, sizeof *s);
    s->fd = fd;
    s->local = address.at.ss_family == AF_UNIX;
    s->read_wants = POLLIN;
    s->write_wants = POLLOUT;
    comm_address_text(&address, s->peer);
    *stream_p = s;
    return BASE_OK;
}

void comm_stream_close(struct comm_stream *stream)
{
    if (stream == NULL)
        return;
    for (int i = 0; i < stream->fd_count; i++)
        close(stream->fds[i]);
    comm_tls_end(stream);
    close(stream->fd);
    base_free(stream);
}

int comm_stream_fd(const struct comm_stream *stream)
{
    return stream->fd;
}

bool comm_stream_encrypted(const struct comm_stream *stream)
{
    return stream->tls != NULL;
}

const char *comm_stream_peer(const struct comm_stream *stream)
{
    return stream->peer;
}

/* Turns the result of a system call, `moved` bytes or errno, into a status. */
static base_status outcome(const struct comm_stream *s, ssize_t moved, size_t *moved_p)
{
    if (moved >= 0)
        *moved_p = (size_t)moved;
    else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        return base_fail(BASE_ERR_PEER_LOST, "the connection with %s broke: %m", s->peer);
    return BASE_OK;
}

/* Keeps the descriptors that came with a message; more than there is room for are closed. */
static void keep_fds(struct comm_stream *s, struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (s->fd_count < COMM_STREAM_FDS)
                s->fds[s->fd_count++] = fd;
            else
                close(fd);
        }
    }
}

static ssize_t receive(struct comm_stream *s, void *bytes, size_t count)
{
    struct iovec part = {bytes, count};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(COMM_STREAM_FDS * sizeof(int))];
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    ssize_t moved;

    if (!s->local)
        return recv(s->fd, bytes, count, 0);
    moved = recvmsg(s->fd, &message, MSG_CMSG_CLOEXEC);
    if (moved >= 0)
        keep_fds(s, &message);
    return moved;
}

base_status comm_stream_read(struct comm_stream *stream, void *bytes, size_t count, size_t *moved_p)
{
    ssize_t moved;

    *moved_p = 0;
    if (count == 0)
        return BASE_OK;
    if (stream->tls != NULL)
        return comm_tls_read(stream, bytes, count, moved_p);
    moved = receive(stream, bytes, count);
    if (moved == 0)
        return base_fail(BASE_ERR_PEER_LOST, "%s closed the connection", stream->peer);
    return outcome(stream, moved, moved_p);
}

base_status comm_stream_write(struct comm_stream *stream, const void *bytes, size_t count,
                              size_t *moved_p)
{
    return comm_stream_write_two(stream, NULL, 0, bytes, count, moved_p);
}

base_status comm_stream_write_two(struct comm_stream *stream, const void *head, size_t head_count,
                                  const void *bytes, size_t count, size_t *moved_p)
{
    struct iovec parts[2] = {{(void *)head, head_count}, {(void *)bytes, count}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

    *moved_p = 0;
    if (stream->tls != NULL)
        return comm_tls_write(stream, head, head_count, bytes, count, moved_p);
    return outcome(stream, sendmsg(stream->fd, &message, MSG_NOSIGNAL), moved_p);
}

base_status comm_stream_write_fd(struct comm_stream *stream, const void *bytes, size_t count,
                                 int fd, size_t *moved_p)
{
    struct iovec part = {(void *)bytes, count};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {0};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);

    *moved_p = 0;
    if (!stream->local)
        return base_fail(BASE_ERR_INTERNAL, "file descriptors do not travel to %s", stream->peer);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    return outcome(stream, sendmsg(stream->fd, &message, MSG_NOSIGNAL), moved_p);
}

int comm_stream_take_fd(struct comm_stream *stream)
{
    int fd = -1;

    if (stream->fd_count > 0) {
        fd = stream->fds[0];
        memmove(stream->fds, stream->fds + 1, (size_t)--stream->fd_count * sizeof fd);
    }
    return fd;
}

short comm_stream_events(const struct comm_stream *stream, bool reads, bool writes)
{
    return (short)((reads ? stream->read_wants : 0) | (writes ? stream->write_wants : 0));
}

base_status comm_poll_sockets(struct pollfd *fds, int count, double deadline, const char *peer)
{
    double left = deadline - base_now();

    if (left <= 0)
        return base_fail(BASE_ERR_TIMEOUT, "%s does not answer", peer);
    if (poll(fds, (nfds_t)count, (int)ceil(fmin(left, 3600) * 1000)) < 0 && errno != EINTR)
        return base_fail(BASE_ERR_IO, "cannot wait for %s: %m", peer);
    return BASE_OK;
}

base_status comm_stream_wait(const struct comm_stream *stream, bool reads, bool writes,
                             double deadline)
{
    struct pollfd fd = {.fd = stream->fd, .events = comm_stream_events(stream, reads, writes)};

    return comm_poll_sockets(&fd, 1, deadline, stream->peer);
}

bool comm_stream_sending(const struct comm_stream *stream, double *seconds_p, double *bytes_p)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;

    *seconds_p = *bytes_p = 0;
    if (getsockopt(stream->fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
        length < offsetof(struct tcp_info, tcpi_rwnd_limited) + sizeof info.tcpi_rwnd_limited)
        return false;
    *seconds_p = 1e-6 * ((double)info.tcpi_busy_time - (double)info.tcpi_rwnd_limited);
    *bytes_p = (double)info.tcpi_bytes_acked;
    return true;
}
