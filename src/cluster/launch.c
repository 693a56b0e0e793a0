/* SPDX-License-Identifier: MIT
 *
 * A launcher is a line in a table: the names of its variables. What it says is checked like
 * anything else from outside.
 */
#include "cluster/launch.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/registry.h"
#include "comm/transport.h"

#define AT(field) offsetof(struct cluster_flags, field)

/* clang-format off */
const struct base_option cluster_options[] = {
    {.name = "workers", .alias = "nproc-per-node", .argument = "W", .kind = BASE_INT,
     .offset = AT(workers), .min = 1, .max = COMM_MAX_WORKERS,
     .names = (const char *const[]){"auto", NULL},
     .help = "worker processes on this host [one, or what the launcher says]; for train also as "
             "many as are fastest, by a short measurement", .local = true},
    {.name = "num-nodes", .alias = "nnodes", .argument = "H", .kind = BASE_INT,
     .offset = AT(num_nodes), .max = COMM_MAX_WORKERS,
     .help = "hosts; start the same command on each, with its own --rank", .local = true},
    {.name = "rank", .alias = "node-rank", .argument = "R", .kind = BASE_INT, .offset = AT(rank),
     .min = -1, .max = COMM_MAX_WORKERS - 1,
     .help = "which of the hosts this is, from 0", .local = true},
    {.name = "master-ip", .alias = "master-addr", .argument = "IP", .kind = BASE_TEXT,
     .offset = AT(master_ip), .help = "address or name of host 0", .local = true},
    {.name = "port", .alias = "master-port", .argument = "P", .kind = BASE_INT, .offset = AT(port),
     .min = -1, .max = UINT16_MAX,
     .help = "host 0 listens here; 0: any free port; -1: 7117 if there are several hosts",
     .local = true},
    {.name = "bind", .argument = "IP", .kind = BASE_TEXT, .offset = AT(bind),
     .help = "numeric address this host listens on, where it has several", .local = true},
    {.name = "token-file", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(token_file),
     .help = "the job's token (see `paceline token`), needed beyond loopback; else PACELINE_TOKEN",
     .local = true},
    {.name = "transport", .argument = "T", .kind = BASE_NAME, .offset = AT(transport),
     .registry = comm_transport_registry,
     .help = "how bytes move between workers, for all of them [the best for each pair]",
     .local = true},
    {.name = "min-workers", .argument = "N", .kind = BASE_INT, .offset = AT(min_workers),
     .max = COMM_MAX_WORKERS,
     .help = "fewer left than this end the job; 0: as few as the program can go on with", .local = true},
    {.name = "silence", .argument = "S", .kind = BASE_REAL, .offset = AT(silence), .min = 0.2,
     .max = 3600,
     .help = "seconds without a sign of life until a worker or a host counts as lost",
     .local = true},
    {.name = "gather", .argument = "S", .kind = BASE_REAL, .offset = AT(gather), .min = 1,
     .max = 86400, .help = "seconds to wait until all hosts and workers are there", .local = true},
    {0},
};
/* clang-format on */

/* Names of variables; the first three must be there. Without local ones there is one process a
 * host. */
struct launcher {
    const char *source;
    const char *rank, *size, *also;
    const char *local_rank, *local_size, *node;
};

static const struct launcher launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "MASTER_ADDR", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
     "GROUP_RANK"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL},
    {"PMI", "PMI_RANK", "PMI_SIZE", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL},
    {"PMIx", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES", "SLURM_LOCALID", NULL,
     "SLURM_NODEID"},
    /* A batch script has SLURM_PROCID, too; only processes that srun started have a step. */
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES", "SLURM_LOCALID", NULL,
     "SLURM_NODEID"},
    /* MASTER_ADDR may be absent: then --master-ip must be given, since several ranks are never
     * taken for one. */
    {"torchrun", "RANK", "WORLD_SIZE", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
     "GROUP_RANK"},
};
enum { LAUNCHERS = sizeof launchers / sizeof launchers[0] };

/* What a launcher's variables say. */
struct said {
    int rank, size, local_rank, local_size, node;
};

/* Reads a whole number from the environment; if it is absent *value_p stays as it is. */
static base_status number(const char *name, int min, int max, int *value_p)
{
    const char *text = name != NULL ? getenv(name) : NULL;
    char *end = NULL;
    long value;

    if (text == NULL)
        return BASE_OK;
    errno = 0;
    value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < min || value > max)
        return base_fail(BASE_ERR_USAGE, "%s is '%s' in the environment, not %d … %d", name, text,
                         min, max);
    *value_p = (int)value;
    return BASE_OK;
}

/* Slurm says "2(x3),1": two tasks on each of three hosts, one on the fourth. */
static base_status slurm_tasks(int node, int *tasks_p)
{
    const char *at = getenv("SLURM_STEP_TASKS_PER_NODE");

    while (at != NULL && *at != '\0') {
        int tasks = 0, times = 1, used = 0;

        if (sscanf(at, "%d%n", &tasks, &used) != 1 || tasks < 1 || tasks > COMM_MAX_WORKERS)
            break;
        at += used;
        if (sscanf(at, "(x%d)%n", &times, &used) == 1)
            at += used;
        if (node < times) {
            *tasks_p = tasks;
            return BASE_OK;
        }
        node -= times;
        at += *at == ',';
    }
    return base_fail(BASE_ERR_USAGE, "SLURM_STEP_TASKS_PER_NODE does not tell the tasks of host %d",
                     node);
}

/* Takes the first number of each bracket, with its zeros: "r[1-2]n[03-05,9]-ib,m1" → "r1n03-ib". */
base_status cluster_slurm_first(const char *list, char name[CLUSTER_HOST_NAME])
{
    const char *at = list;
    size_t used = 0;

    while (*at != '\0' && *at != ',' && used + 1 < CLUSTER_HOST_NAME) {
        const char *digits = at + 1;
        size_t count = strspn(digits, "0123456789");

        if (*at != '[') {
            if (!isalnum((unsigned char)*at) && strchr("-._", *at) == NULL)
                break;
            name[used++] = *at++;
            continue;
        }
        at = strchr(digits, ']');
        if (count == 0 || at == NULL || used + count >= CLUSTER_HOST_NAME ||
            strspn(digits, "0123456789-,") != (size_t)(at - digits))
            break;
        memcpy(name + used, digits, count);
        used += count;
        at++;
    }
    name[used] = '\0';
    if (used == 0 || at == NULL || (*at != '\0' && *at != ','))
        return base_fail(BASE_ERR_USAGE,
                         "'%.200s' is no node list of Slurm; give --master-ip, host 0", list);
    return BASE_OK;
}

static base_status hear(const struct launcher *l, struct said *said_p)
{
    base_status st = BASE_OK;
    struct said s = {.local_size = 1, .node = -1};

    TRY(number(l->rank, 0, COMM_MAX_WORKERS - 1, &s.rank));
    TRY(number(l->size, 1, COMM_MAX_WORKERS, &s.size));
    TRY(number(l->local_rank, 0, COMM_MAX_WORKERS - 1, &s.local_rank));
    TRY(number(l->node, 0, COMM_MAX_WORKERS - 1, &s.node));
    if (l->local_size != NULL)
        TRY(number(l->local_size, 1, COMM_MAX_WORKERS, &s.local_size));
    else
        TRY(slurm_tasks(s.node, &s.local_size));
    if (s.rank >= s.size || s.local_rank >= s.local_size || s.local_size > s.size)
        TRY(base_fail(BASE_ERR_USAGE, "%s says rank %d of %d, local rank %d of %d: that cannot be",
                      l->source, s.rank, s.size, s.local_rank, s.local_size));
    if (l->local_size != NULL) { /* ranks are dealt host by host, as launchers do by default */
        int node = s.rank / s.local_size;

        if (s.size % s.local_size != 0 || s.rank % s.local_size != s.local_rank ||
            (s.node >= 0 && s.node != node))
            TRY(base_fail(BASE_ERR_USAGE,
                          "%s did not place the same number of ranks on each host, "
                          "one host after the other; start one process a host with --num-nodes, "
                          "--rank, --master-ip and --workers",
                          l->source));
        s.node = node;
    }
    *said_p = s;
out:
    return st;
}

/* The address of host 0, as the launcher knows it; "" when it does not. */
static base_status launcher_master(const struct launcher *l, char name[CLUSTER_HOST_NAME],
                                   int *port_p)
{
    base_status st = BASE_OK;
    const char *address = getenv("MASTER_ADDR"), *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");
    const char *nodes = getenv("SLURM_STEP_NODELIST");

    if (address != NULL)
        snprintf(name, CLUSTER_HOST_NAME, "%s", address);
    else if (nodes != NULL && strncmp(l->rank, "OMPI", 4) != 0)
        TRY(cluster_slurm_first(nodes, name));
    TRY(number("MASTER_PORT", 1, UINT16_MAX - 1, port_p));
    /* Then torchrun itself listens on that port. */
    if (agent != NULL && strcmp(agent, "True") == 0 && *port_p > 0)
        *port_p += 1;
out:
    return st;
}

static base_status resolve(const char *name, char address[COMM_ADDRESS_TEXT])
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *found = NULL;
    base_status st = BASE_OK;
    int problem;

    problem = getaddrinfo(name, NULL, &hints, &found);
    if (problem == 0)
        problem = getnameinfo(found->ai_addr, found->ai_addrlen, address, COMM_ADDRESS_TEXT, NULL,
                              0, NI_NUMERICHOST);
    if (problem != 0)
        st =
            base_fail(BASE_ERR_NETWORK, "no address of host '%s': %s", name, gai_strerror(problem));
    if (found != NULL)
        freeaddrinfo(found);
    return st;
}

static base_status check_flags(const struct cluster_flags *f)
{
    uint8_t binary[16];

    if (f->num_nodes > 1 && f->rank < 0)
        return base_fail(BASE_ERR_USAGE, "--num-nodes %lld needs --rank R, which of them this is",
                         (long long)f->num_nodes);
    if (f->rank > 0 && f->num_nodes == 0)
        return base_fail(BASE_ERR_USAGE, "--rank %lld needs --num-nodes H", (long long)f->rank);
    if (f->num_nodes > 0 && f->rank >= f->num_nodes)
        return base_fail(BASE_ERR_USAGE, "--rank %lld is not below --num-nodes %lld",
                         (long long)f->rank, (long long)f->num_nodes);
    if (f->bind != NULL && inet_pton(AF_INET, f->bind, binary) != 1 &&
        inet_pton(AF_INET6, f->bind, binary) != 1)
        return base_fail(BASE_ERR_USAGE, "--bind takes a numeric address, not '%s'", f->bind);
    return BASE_OK;
}

/* Sets hosts, host, workers; `master` and `port` where the launcher knows them. */
static base_status from_environment(struct cluster_launch *l, char master[CLUSTER_HOST_NAME],
                                    int *port_p)
{
    base_status st = BASE_OK;
    struct said said;

    for (int i = 0; i < LAUNCHERS; i++) {
        const struct launcher *from = &launchers[i];

        if (getenv(from->rank) == NULL || getenv(from->size) == NULL || getenv(from->also) == NULL)
            continue;
        TRY(hear(from, &said));
        TRY(launcher_master(from, master, port_p));
        l->source = from->source;
        l->workers = said.local_size;
        l->hosts = said.size / said.local_size;
        if (strcmp(from->also, "SLURM_STEP_NUM_NODES") == 0)
            TRY(number(from->also, 1, COMM_MAX_WORKERS, &l->hosts));
        l->host = said.node;
        l->idle = said.local_rank != 0;
        if (l->host >= l->hosts)
            TRY(base_fail(BASE_ERR_USAGE, "%s says host %d of %d", from->source, l->host,
                          l->hosts));
        break;
    }
out:
    return st;
}

static base_status find_master(struct cluster_launch *l, const struct cluster_flags *f,
                               const char *name)
{
    if (f->master_ip != NULL)
        name = f->master_ip;
    if (name[0] != '\0')
        return resolve(name, l->master);
    if (l->hosts > 1)
        return base_fail(BASE_ERR_USAGE, "%d hosts need --master-ip IP, the address of host 0",
                         l->hosts);
    snprintf(l->master, sizeof l->master, "%s", f->bind != NULL ? f->bind : "127.0.0.1");
    return BASE_OK;
}

base_status cluster_launch_find(const struct cluster_flags *f, struct cluster_launch *launch_p)
{
    base_status st = BASE_OK;
    struct cluster_launch l = {.workers = 1,
                               .hosts = 1,
                               .source = "flags",
                               .transport = f->transport,
                               .min_workers = (int)f->min_workers,
                               .silence = f->silence,
                               .gather = f->gather};
    const struct comm_transport *transport =
        f->transport != NULL
            ? base_registry_get(f->transport, comm_transport_registry, comm_transport_count)
            : NULL;
    char master[CLUSTER_HOST_NAME] = "";
    int port = CLUSTER_PORT;

    *launch_p = l;
    TRY(check_flags(f));
    if (f->num_nodes > 0) {
        l.hosts = (int)f->num_nodes;
        l.host = f->rank > 0 ? (int)f->rank : 0;
    } else {
        TRY(from_environment(&l, master, &port));
    }
    if (f->workers > 0)
        l.workers = (int)f->workers;
    l.undecided = f->workers == 0;
    if (l.undecided && strcmp(l.source, "flags") != 0)
        TRY(base_fail(BASE_ERR_USAGE, "--workers auto is not for jobs of %s, which says how many",
                      l.source));
    if (f->port >= 0)
        port = (int)f->port;
    l.port = (uint16_t)port;
    if (transport != NULL && transport->start != NULL) { /* its launcher started all workers */
        l.idle = false;
        *launch_p = l;
        return BASE_OK;
    }
    if (transport != NULL && (transport->can & COMM_CAN_SHARE) != 0 && l.hosts > 1)
        TRY(base_fail(BASE_ERR_USAGE, "--transport %s stays on one host, and there are %d",
                      transport->name, l.hosts));
    TRY(find_master(&l, f, master));
    l.listens = l.hosts > 1 || f->port >= 0;
    if (f->bind != NULL)
        snprintf(l.bind, sizeof l.bind, "%s", f->bind);
    else if (l.host == 0)
        snprintf(l.bind, sizeof l.bind, "%s", l.master);
    if (l.hosts > 1 && l.port == 0 && l.host > 0)
        TRY(base_fail(BASE_ERR_USAGE,
                      "with --port 0 no other host can find host 0; give its port"));
    TRY(comm_secret_find(f->token_file, &l.secret, &l.has_secret));
    if (strcmp(l.source, "flags") != 0)
        base_info("%s launched this: host %d of %d, %d workers%s", l.source, l.host, l.hosts,
                  l.workers, l.idle ? "; another process of this host starts them" : "");
    *launch_p = l;
out:
    return st;
}
