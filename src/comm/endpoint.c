/* SPDX-License-Identifier: MIT */
#include "comm/endpoint.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "comm/comm_private.h"

base_status comm_endpoint_open(const struct comm_endpoint_setup *setup,
                               struct comm_endpoint **endpoint_p)
{
    struct comm_endpoint *e = base_calloc(1, sizeof *e);
    base_status st = BASE_OK;

    *endpoint_p = NULL;
    e->bell = -1;
    e->setup = *setup;
    snprintf(e->job, sizeof e->job, "%s", setup->job);
    e->setup.job = e->job;
    if (setup->secret != NULL) {
        e->secret = *setup->secret;
        e->setup.secret = &e->secret;
    }
    e->setup.listen = NULL;
    if (setup->listen != NULL)
        TRY(comm_listen(setup->listen, 0, e->setup.secret, &e->listener));
    if ((e->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        TRY(base_fail(BASE_ERR_IO, "cannot make an eventfd: %m"));
    *endpoint_p = e;
    e = NULL;
out:
    comm_endpoint_close(e);
    return st;
}

void comm_endpoint_close(struct comm_endpoint *endpoint)
{
    if (endpoint == NULL)
        return;
    if (endpoint->bell >= 0)
        close(endpoint->bell);
    comm_listener_close(endpoint->listener);
    explicit_bzero(&endpoint->secret, sizeof endpoint->secret);
    base_free(endpoint);
}

uint16_t comm_endpoint_port(const struct comm_endpoint *endpoint)
{
    return endpoint->listener != NULL ? comm_listener_port(endpoint->listener) : 0;
}

/* The bell rings before `rung` is set. A thread that silences the bell in between finds `rung` set
 * afterwards and looks once more; in the other order the bell would stay readable for good. */
void comm_endpoint_ring(struct comm_endpoint *endpoint)
{
    (void)eventfd_write(endpoint->bell, 1);
    atomic_store(&endpoint->rung, true);
    if (base_world != NULL)
        base_world->wake(endpoint);
}

static void ring(struct comm_endpoint *endpoint)
{
    comm_endpoint_ring(endpoint);
    if (endpoint->setup.host != NULL)
        comm_host_rouse(endpoint->setup.host);
}

void comm_endpoint_listen(struct comm_endpoint *endpoint, double deadline)
{
    struct pollfd bell = {.fd = endpoint->bell, .events = POLLIN};
    double seconds = fmax(deadline - base_now(), 0);

    if (base_world != NULL)
        base_world->wait(endpoint, deadline);
    else
        poll(&bell, 1, (int)ceil(1e3 * fmin(seconds, 3600)));
}

void comm_endpoint_hush(struct comm_endpoint *endpoint)
{
    eventfd_t count;

    if (atomic_load(&endpoint->rung) && atomic_exchange(&endpoint->rung, false))
        (void)eventfd_read(endpoint->bell, &count);
}

void comm_endpoint_lost(struct comm_endpoint *endpoint, uint32_t view, uint32_t id)
{
    uint64_t lost = (uint64_t)view << 32 | id, old = atomic_load(&endpoint->lost);

    while (old >> 32 <= view && !atomic_compare_exchange_weak(&endpoint->lost, &old, lost))
        continue;
    ring(endpoint);
}

void comm_endpoint_cancel(struct comm_endpoint *endpoint)
{
    atomic_store(&endpoint->cancelled, true);
    ring(endpoint);
}

void comm_endpoint_newer(struct comm_endpoint *endpoint, uint32_t view)
{
    uint32_t old = atomic_load(&endpoint->newest);

    while (old < view && !atomic_compare_exchange_weak(&endpoint->newest, &old, view))
        continue;
    if (old < view)
        ring(endpoint);
}

uint32_t comm_endpoint_last_lost(const struct comm_endpoint *endpoint, uint32_t view)
{
    uint64_t lost = atomic_load(&endpoint->lost);

    if (lost >> 32 >= view && (uint32_t)lost != 0)
        return (uint32_t)lost;
    return endpoint->setup.host != NULL ? comm_host_lost(endpoint->setup.host, view) : 0;
}

base_status comm_shared_open(struct comm_endpoint *endpoint, const char *key, size_t bytes,
                             struct comm_shared *shared_p)
{
    const struct comm_endpoint_setup *setup = &endpoint->setup;
    struct stat file;
    base_status st;
    void *at;
    int fd = -1;

    *shared_p = (struct comm_shared){0};
    if (setup->region == NULL)
        TRY(base_fail(BASE_ERR_INTERNAL, "shared memory %s was asked for where there is none",
                      key));
    TRY(setup->region(setup->context, key, bytes, &fd));
    if (fstat(fd, &file) != 0 || (size_t)file.st_size != bytes)
        TRY(base_fail(BASE_ERR_DATA, "shared memory %s has %lld bytes where %zu are expected", key,
                      (long long)file.st_size, bytes));
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        TRY(base_fail(BASE_ERR_MEMORY, "cannot map %zu bytes of shared memory %s: %m", bytes, key));
    *shared_p = (struct comm_shared){at, bytes};
out:
    if (fd >= 0)
        close(fd);
    return st;
}

void comm_shared_close(struct comm_shared *shared)
{
    if (shared->at != NULL)
        munmap(shared->at, shared->bytes);
    *shared = (struct comm_shared){0};
}
