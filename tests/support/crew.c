/* SPDX-License-Identifier: MIT
 *
 * Two socket pairs a worker: `ask` for what it wants and gets an answer to (main thread), `news`
 * for what it is told at any time (control thread). One lock guards the crew's state in the parent.
 */
#include "support/crew.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/host.h"
#include "support/launched.h"

enum { MAX_REGIONS = 256, MAX_HOSTS = 8 };
enum kind { READY, REGION, BYE, VIEW, LOST, CANCEL };

struct note {
    enum kind kind;
    uint32_t view, id;
    uint16_t port;
    uint64_t bytes;
    char key[64];
    struct comm_view members;
};

struct seat { /* a worker, seen from the parent */
    pid_t pid;
    int ask, news;
    int host, status;
    uint16_t port;
    bool ready, left, lost, reaped, signalled;
    double lost_at;
};

struct region {
    int host, fd;
    char key[64];
};

struct crew {
    struct crew_setup setup;
    void *board;
    struct seat seats[COMM_MAX_WORKERS];
    struct comm_host *hosts[MAX_HOSTS];
    pthread_t watchers[MAX_HOSTS], server;
    struct watcher {
        struct crew *crew;
        int host;
    } watcher_of[MAX_HOSTS];
    struct region regions[MAX_REGIONS]; /* the last ones */
    int region_count;                   /* ever made */
    uint32_t view;                      /* number of the last one published */
    uint32_t over;                      /* views up to this one get no more memory */
    _Atomic bool ending;
    pthread_mutex_t lock;
};

/* --- the child ----------------------------------------------------------------------------- */

struct crew_seat {
    int ask, news, words, slot;
    struct comm_host *host;
    struct crew_worker *me;
    struct comm_view view;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

_Noreturn void crew_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: worker %d: not so: %s (%s)\n", file, line, (int)getpid(), what,
            base_message());
    _exit(1);
}

/* Answers by the parent come with a descriptor. */
static bool receive_note(int from, struct note *note, int *fd_p)
{
    char space[CMSG_SPACE(sizeof(int))];
    struct iovec part = {note, sizeof *note};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (fd_p != NULL) {
        message.msg_control = space;
        message.msg_controllen = sizeof space;
    }
    if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) != sizeof *note)
        return false;
    if (fd_p != NULL && CMSG_FIRSTHDR(&message) != NULL)
        memcpy(fd_p, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof *fd_p);
    return true;
}

static void send_note(int to, const struct note *note, int fd)
{
    char space[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {(void *)note, sizeof *note};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (fd >= 0) {
        message.msg_control = space;
        message.msg_controllen = sizeof space;
        *CMSG_FIRSTHDR(&message) = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof fd);
    }
    (void)sendmsg(to, &message, MSG_NOSIGNAL); /* a worker that is gone needs no news */
}

static base_status ask_region(void *context, const char *key, size_t bytes, int *fd_p)
{
    struct crew_seat *seat = context;
    struct note note = {.kind = REGION, .bytes = bytes};

    *fd_p = -1;
    snprintf(note.key, sizeof note.key, "%s", key);
    send_note(seat->ask, &note, -1);
    if (!receive_note(seat->ask, &note, fd_p) || *fd_p < 0)
        return base_fail(BASE_ERR_PEER_LOST, "shared memory %s is of a view that is over", key);
    return BASE_OK;
}

static void *control(void *argument)
{
    struct crew_seat *seat = argument;
    struct note note;

    pthread_mutex_lock(&seat->lock);
    crew_check(comm_host_attach(seat->words, seat->slot, &seat->host) == BASE_OK);
    pthread_cond_broadcast(&seat->changed);
    pthread_mutex_unlock(&seat->lock);
    while (receive_note(seat->news, &note, NULL)) {
        pthread_mutex_lock(&seat->lock);
        if (note.kind == VIEW) {
            seat->view = note.members;
            comm_endpoint_newer(seat->me->endpoint, note.members.number);
        } else if (note.kind == LOST) {
            comm_endpoint_lost(seat->me->endpoint, note.view, note.id);
        } else if (note.kind == CANCEL) {
            comm_endpoint_cancel(seat->me->endpoint);
        }
        pthread_cond_broadcast(&seat->changed);
        pthread_mutex_unlock(&seat->lock);
    }
    pthread_mutex_lock(&seat->lock); /* the body is over: an order that sanitizers see */
    comm_host_close(seat->host);
    pthread_mutex_unlock(&seat->lock);
    return NULL;
}

void crew_view(struct crew_worker *me, uint32_t after, struct comm_view *view_p)
{
    if (me->seat == NULL) {
        launched_view(view_p);
        return;
    }
    pthread_mutex_lock(&me->seat->lock);
    while (me->seat->view.number <= after)
        pthread_cond_wait(&me->seat->changed, &me->seat->lock);
    *view_p = me->seat->view;
    pthread_mutex_unlock(&me->seat->lock);
}

static _Noreturn void run_child(const struct crew_setup *setup, struct crew_worker *me,
                                struct crew_seat *seat)
{
    struct comm_endpoint_setup endpoint = {.id = me->id,
                                           .job = "crew",
                                           .listen = setup->listen,
                                           .secret = setup->secret,
                                           .region = ask_region,
                                           .context = seat};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pthread_mutex_init(&seat->lock, NULL);
    pthread_cond_init(&seat->changed, NULL);
    seat->me = me;
    me->seat = seat;
    pthread_create(&seat->thread, NULL, control, seat);
    pthread_mutex_lock(&seat->lock);
    while (seat->host == NULL)
        pthread_cond_wait(&seat->changed, &seat->lock);
    endpoint.host = seat->host;
    crew_check(comm_endpoint_open(&endpoint, &me->endpoint) == BASE_OK);
    pthread_mutex_unlock(&seat->lock);
    send_note(seat->ask, &(struct note){.kind = READY, .port = comm_endpoint_port(me->endpoint)},
              -1);
    setup->body(me);
    send_note(seat->ask, &(struct note){.kind = BYE}, -1);
    pthread_mutex_lock(&seat->lock);
    shutdown(seat->news, SHUT_RDWR);
    pthread_mutex_unlock(&seat->lock);
    pthread_join(seat->thread, NULL);
    comm_endpoint_close(me->endpoint);
    _exit(0);
}

/* --- the parent ---------------------------------------------------------------------------- */

static void tell_all(struct crew *crew, const struct note *note)
{
    for (int i = 0; i < crew->setup.workers; i++)
        if (!crew->seats[i].lost && !crew->seats[i].left)
            send_note(crew->seats[i].news, note, -1);
}

static void publish_view(struct crew *crew)
{
    struct note note = {.kind = VIEW, .members.number = ++crew->view};

    for (int i = 0; i < crew->setup.workers; i++) {
        const struct seat *seat = &crew->seats[i];
        struct comm_member *m = &note.members.members[note.members.size];

        if (seat->lost || seat->left)
            continue;
        *m = (struct comm_member){.id = (uint32_t)i + 1,
                                  .host = (uint16_t)seat->host,
                                  .slot = (uint16_t)i,
                                  .port = seat->port,
                                  .address = "127.0.0.1"};
        note.members.size++;
    }
    tell_all(crew, &note);
}

/* Regions "view/N/…" die with view N; workers that mapped them keep them. No worker gets one of
 * that name again: it would be other memory than its peers have. */
static void drop_regions(struct crew *crew)
{
    crew->over = crew->view;
    for (int i = 0; i < MAX_REGIONS && i < crew->region_count; i++)
        close(crew->regions[i].fd);
    crew->region_count = 0;
}

/* The rules of a loss: all workers are told at once; the next view comes after the reaping. */
static void lose(struct crew *crew, int index)
{
    struct seat *seat = &crew->seats[index];
    struct note note = {.kind = LOST, .view = crew->view, .id = (uint32_t)index + 1};

    if (seat->lost || seat->left)
        return;
    seat->lost = true;
    seat->lost_at = base_now();
    for (int host = 0; host < crew->setup.hosts; host++)
        comm_host_alarm(crew->hosts[host], note.view, note.id);
    tell_all(crew, &note);
    kill(seat->pid, SIGKILL);
    waitpid(seat->pid, &seat->status, 0);
    seat->reaped = true;
    drop_regions(crew);
    if (crew->view > 0)
        publish_view(crew);
}

static void *watch(void *argument)
{
    struct watcher *watcher = argument;
    struct crew *crew = watcher->crew;
    int slot;

    while (!atomic_load(&crew->ending)) {
        if (comm_host_watch(crew->hosts[watcher->host], base_now() + 10, &slot) != BASE_OK ||
            slot < 0)
            continue;
        pthread_mutex_lock(&crew->lock);
        lose(crew, slot);
        pthread_mutex_unlock(&crew->lock);
    }
    return NULL;
}

static int region_of(struct crew *crew, int host, const char *key, uint64_t bytes)
{
    struct region *new;
    unsigned view;

    if (sscanf(key, "view/%u/", &view) == 1 && view <= crew->over)
        return -1;
    for (int i = 0; i < MAX_REGIONS && i < crew->region_count; i++)
        if (crew->regions[i].host == host && strcmp(crew->regions[i].key, key) == 0)
            return crew->regions[i].fd;
    new = &crew->regions[crew->region_count++ % MAX_REGIONS];
    if (crew->region_count > MAX_REGIONS)
        close(new->fd);
    new->host = host;
    snprintf(new->key, sizeof new->key, "%s", key);
    new->fd = memfd_create(key, MFD_CLOEXEC);
    return ftruncate(new->fd, (off_t)bytes) == 0 ? new->fd : -1;
}

static void answer(struct crew *crew, int index)
{
    struct seat *seat = &crew->seats[index];
    struct note note;
    bool all = true;

    if (!receive_note(seat->ask, &note, NULL)) {
        lose(crew, index); /* unless it has said good-bye */
        close(seat->ask);
        seat->ask = -1;
    } else if (note.kind == REGION) {
        send_note(seat->ask, &note, region_of(crew, seat->host, note.key, note.bytes));
    } else if (note.kind == READY) {
        seat->ready = true;
        seat->port = note.port;
        for (int i = 0; i < crew->setup.workers; i++)
            all = all && (crew->seats[i].ready || crew->seats[i].lost);
        if (all && crew->view == 0)
            publish_view(crew);
    } else if (note.kind == BYE) {
        seat->left = true;
    }
}

static void *serve(void *argument)
{
    struct crew *crew = argument;
    struct pollfd fds[COMM_MAX_WORKERS];
    int workers = crew->setup.workers, open = workers;

    while (open > 0) {
        for (int i = 0; i < workers; i++)
            fds[i] = (struct pollfd){.fd = crew->seats[i].ask, .events = POLLIN};
        poll(fds, (nfds_t)workers, -1);
        pthread_mutex_lock(&crew->lock);
        for (int i = 0; i < workers; i++) {
            if (fds[i].fd >= 0 && fds[i].revents != 0)
                answer(crew, i);
            open -= fds[i].fd >= 0 && crew->seats[i].ask < 0;
        }
        pthread_mutex_unlock(&crew->lock);
    }
    return NULL;
}

static void start_worker(struct crew *crew, int index)
{
    struct seat *seat = &crew->seats[index];
    int ask[2], news[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ask) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, news) != 0)
        abort();
    seat->host = index * crew->setup.hosts / crew->setup.workers;
    seat->ask = ask[0];
    seat->news = news[0];
    fflush(NULL);
    if ((seat->pid = fork()) == 0) {
        struct crew_seat own = {
            .ask = ask[1], .news = news[1], .words = comm_host_fd(crew->hosts[seat->host])};
        struct crew_worker me = {.index = index,
                                 .id = (uint32_t)index + 1,
                                 .workers = crew->setup.workers,
                                 .board = crew->board,
                                 .argument = crew->setup.argument};

        own.slot = index;
        run_child(&crew->setup, &me, &own);
    }
    close(ask[1]);
    close(news[1]);
}

struct crew *crew_start(const struct crew_setup *setup)
{
    struct crew *crew = base_calloc(1, sizeof *crew);

    crew->setup = *setup;
    pthread_mutex_init(&crew->lock, NULL);
    if (setup->board_bytes > 0)
        crew->board = mmap(NULL, setup->board_bytes, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < setup->hosts; i++)
        if (comm_host_create(&crew->hosts[i]) != BASE_OK)
            abort();
    for (int i = 0; i < setup->workers; i++)
        start_worker(crew, i);
    for (int i = 0; i < setup->hosts; i++) {
        crew->watcher_of[i] = (struct watcher){crew, i};
        pthread_create(&crew->watchers[i], NULL, watch, &crew->watcher_of[i]);
    }
    pthread_create(&crew->server, NULL, serve, crew);
    return crew;
}

void *crew_board(struct crew *crew)
{
    return crew->board;
}

void crew_signal(struct crew *crew, int index, int signal)
{
    pthread_mutex_lock(&crew->lock);
    if (!crew->seats[index].reaped)
        kill(crew->seats[index].pid, signal);
    crew->seats[index].signalled = true;
    pthread_mutex_unlock(&crew->lock);
}

void crew_cancel(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    tell_all(crew, &(struct note){.kind = CANCEL});
    pthread_mutex_unlock(&crew->lock);
}

double crew_lost_at(struct crew *crew, int index)
{
    double at;

    pthread_mutex_lock(&crew->lock);
    at = crew->seats[index].lost_at;
    pthread_mutex_unlock(&crew->lock);
    return at;
}

static void kill_the_rest(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    for (int i = 0; i < crew->setup.workers; i++)
        if (!crew->seats[i].left && !crew->seats[i].lost)
            kill(crew->seats[i].pid, SIGKILL);
    pthread_mutex_unlock(&crew->lock);
}

int crew_finish(struct crew *crew, double deadline)
{
    struct timespec until;
    double left = deadline - base_now();
    int bad = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += left > 0 ? (time_t)left + 1 : 0;
    if (pthread_timedjoin_np(crew->server, NULL, &until) != 0) {
        kill_the_rest(crew);
        pthread_join(crew->server, NULL);
        bad++;
    }
    atomic_store(&crew->ending, true);
    for (int i = 0; i < crew->setup.hosts; i++) {
        comm_host_poke(crew->hosts[i]);
        pthread_join(crew->watchers[i], NULL);
        comm_host_close(crew->hosts[i]);
    }
    for (int i = 0; i < crew->setup.workers; i++) {
        struct seat *seat = &crew->seats[i];

        if (!seat->reaped)
            waitpid(seat->pid, &seat->status, 0);
        close(seat->news);
        bad += seat->status != 0 && !seat->signalled;
    }
    drop_regions(crew);
    if (crew->board != NULL)
        munmap(crew->board, crew->setup.board_bytes);
    base_free(crew);
    return bad;
}
