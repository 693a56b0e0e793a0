/* SPDX-License-Identifier: MIT */
#include "cluster/dials.h"

/* Seconds that one attempt may take, and between two attempts. */
static const double ATTEMPT = 1.5, RETRY = 0.2;

base_status cluster_dials_init(struct cluster_dials *d, const struct comm_secret *secret)
{
    *d = (struct cluster_dials){0};
    return secret != NULL ? comm_tls_new(secret, false, &d->tls) : BASE_OK;
}

void cluster_dials_drop(struct cluster_dials *d, int host)
{
    comm_connecting_free(d->hosts[host].connecting);
    d->hosts[host].connecting = NULL;
}

void cluster_dials_fini(struct cluster_dials *d)
{
    for (int i = 0; i < CLUSTER_MAX_HOSTS; i++)
        cluster_dials_drop(d, i);
    comm_tls_free(d->tls);
    d->tls = NULL;
}

enum cluster_dialled cluster_dials_try(struct cluster_dials *d, const char *address, uint16_t port,
                                       const struct comm_hello *hello, double now,
                                       struct comm_stream **stream_p)
{
    struct comm_connecting **c = &d->hosts[hello->to].connecting;
    base_status st = BASE_OK;
    bool refused = false;

    *stream_p = NULL;
    if (*c == NULL && now < d->hosts[hello->to].retry_at)
        return CLUSTER_DIALLING;
    if (*c == NULL) {
        d->hosts[hello->to].retry_at = now + RETRY;
        d->hosts[hello->to].deadline = now + ATTEMPT;
        st = comm_connecting_new(address, port, d->tls, hello, c);
    }
    if (st == BASE_OK) {
        st = comm_connecting_step(*c, stream_p);
        refused = st != BASE_OK && comm_connecting_refused(*c);
    }
    if (st != BASE_OK || *stream_p != NULL || now > d->hosts[hello->to].deadline)
        cluster_dials_drop(d, (int)hello->to);
    return refused ? CLUSTER_REFUSED : *stream_p != NULL ? CLUSTER_CONNECTED : CLUSTER_DIALLING;
}

int cluster_dials_watch(const struct cluster_dials *d, struct pollfd *fds, int room)
{
    int count = 0;

    for (int i = 0; i < CLUSTER_MAX_HOSTS && count < room; i++)
        if (d->hosts[i].connecting != NULL)
            fds[count++] = comm_connecting_watch(d->hosts[i].connecting);
    return count;
}
