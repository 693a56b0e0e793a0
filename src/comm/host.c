/* SPDX-License-Identifier: MIT
 *
 * The alive word of a worker is the lock of a robust mutex that it holds for life: glibc keeps the
 * list of such locks that the kernel walks when the thread ends, so ours stands beside any other.
 * The bit FUTEX_WAITERS is set from the start; with it the kernel wakes the thread that sleeps on
 * the word before it tears down the memory of the process.
 */
#include "comm/host.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/futex.h"

struct words {
    _Alignas(64) _Atomic uint32_t alarm; /* incremented at every loss */
    _Atomic uint64_t lost;               /* view << 32 | id */
    struct {
        _Alignas(64) pthread_mutex_t held;
    } slots[COMM_HOST_SLOTS];
};

struct comm_host {
    struct words *words;
    int fd;   /* the agent's descriptor of the memory; -1 in a worker */
    int slot; /* this worker's slot; -1 in the agent */
    _Atomic bool reported[COMM_HOST_SLOTS]; /* deaths that comm_host_watch has reported */
    _Atomic uint32_t poked;
    uint32_t poked_seen;
};

static _Atomic uint32_t *alive_word(struct comm_host *host, int slot)
{
    return (_Atomic uint32_t *)&host->words->slots[slot].held.__data.__lock;
}

static base_status map_words(struct comm_host *host, int fd)
{
    void *at = mmap(NULL, sizeof *host->words, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (at == MAP_FAILED)
        return base_fail(BASE_ERR_IO, "cannot map the host's words: %m");
    host->words = at;
    return BASE_OK;
}

static struct comm_host *new_host(void)
{
    struct comm_host *host = base_calloc(1, sizeof *host);

    host->fd = host->slot = -1;
    return host;
}

static void init_slot(struct comm_host *host, int slot)
{
    pthread_mutexattr_t robust;

    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&host->words->slots[slot].held, &robust);
    pthread_mutexattr_destroy(&robust);
}

base_status comm_host_create(struct comm_host **host_p)
{
    struct comm_host *host = new_host();
    base_status st;

    *host_p = NULL;
    TRY(comm_futex_check());
    host->fd = memfd_create("paceline-words", MFD_CLOEXEC);
    if (host->fd < 0 || ftruncate(host->fd, sizeof *host->words) != 0)
        TRY(base_fail(BASE_ERR_IO, "cannot make shared memory: %m"));
    TRY(map_words(host, host->fd));
    for (int i = 0; i < COMM_HOST_SLOTS; i++)
        init_slot(host, i);
    *host_p = host;
    host = NULL;
out:
    comm_host_close(host);
    return st;
}

int comm_host_fd(const struct comm_host *host)
{
    return host->fd;
}

base_status comm_host_attach(int fd, int slot, struct comm_host **host_p)
{
    struct comm_host *host = new_host();
    struct stat file;
    base_status st;
    int refused;

    *host_p = NULL;
    TRY(comm_futex_check());
    if (slot < 0 || slot >= COMM_HOST_SLOTS)
        TRY(base_fail(BASE_ERR_DATA, "slot %d is none of 0 … %d", slot, COMM_HOST_SLOTS - 1));
    if (fstat(fd, &file) != 0 || file.st_size != sizeof *host->words)
        TRY(base_fail(BASE_ERR_DATA, "descriptor %d does not hold a host's words", fd));
    TRY(map_words(host, fd));
    refused = pthread_mutex_trylock(&host->words->slots[slot].held);
    if (refused == EOWNERDEAD) /* its last owner died: unusable until comm_host_clear */
        pthread_mutex_unlock(&host->words->slots[slot].held);
    if (refused != 0)
        TRY(base_fail(BASE_ERR_DATA, "slot %d belongs to another worker", slot));
    host->slot = slot;
    atomic_fetch_or(alive_word(host, slot), FUTEX_WAITERS);
    *host_p = host;
    host = NULL;
out:
    comm_host_close(host);
    return st;
}

void comm_host_close(struct comm_host *host)
{
    if (host == NULL)
        return;
    if (host->slot >= 0)
        pthread_mutex_unlock(&host->words->slots[host->slot].held);
    if (host->words != NULL)
        munmap(host->words, sizeof *host->words);
    if (host->fd >= 0)
        close(host->fd);
    base_free(host);
}

/* Finds a slot whose worker died since the last look, or -1, and notes the words as it saw them. */
static int find_dead(struct comm_host *host, struct comm_futex *seen)
{
    for (int i = 0; i < COMM_HOST_SLOTS; i++) {
        seen[i].word = alive_word(host, i);
        seen[i].seen = atomic_load(seen[i].word);
        if ((seen[i].seen & FUTEX_OWNER_DIED) != 0 && !atomic_exchange(&host->reported[i], true))
            return i;
    }
    return -1;
}

bool comm_host_died(struct comm_host *host, int slot)
{
    return (atomic_load(alive_word(host, slot)) & FUTEX_OWNER_DIED) != 0;
}

base_status comm_host_watch(struct comm_host *host, double deadline, int *slot_p)
{
    struct comm_futex seen[COMM_HOST_SLOTS + 1];

    for (;;) {
        seen[COMM_HOST_SLOTS] = (struct comm_futex){&host->poked, atomic_load(&host->poked)};
        *slot_p = find_dead(host, seen);
        if (*slot_p >= 0)
            return BASE_OK;
        if (seen[COMM_HOST_SLOTS].seen != host->poked_seen || base_now() >= deadline) {
            host->poked_seen = seen[COMM_HOST_SLOTS].seen;
            return BASE_OK;
        }
        comm_futex_wait(seen, COMM_HOST_SLOTS + 1, deadline);
    }
}

void comm_host_poke(struct comm_host *host)
{
    atomic_fetch_add(&host->poked, 1);
    comm_futex_wake(&host->poked);
}

void comm_host_alarm(struct comm_host *host, uint32_t view, uint32_t id)
{
    uint64_t lost = (uint64_t)view << 32 | id, old = atomic_load(&host->words->lost);

    /* A loss in an old view, told late, must not hide one in a newer view. */
    while (old >> 32 <= view && !atomic_compare_exchange_weak(&host->words->lost, &old, lost))
        continue;
    comm_host_rouse(host);
}

void comm_host_rouse(struct comm_host *host)
{
    atomic_fetch_add(&host->words->alarm, 1);
    comm_futex_wake(&host->words->alarm);
}

/* Makes the slot as init_slot left it. The watching thread may be reading the word, so this only
 * stores to it. */
void comm_host_clear(struct comm_host *host, int slot)
{
    struct __pthread_mutex_s *held = &host->words->slots[slot].held.__data;

    held->__count = held->__nusers = 0;
    held->__owner = 0;
    held->__list = (__pthread_list_t){0};
    atomic_store(alive_word(host, slot), 0);
    atomic_store(&host->reported[slot], false);
}

_Atomic uint32_t *comm_host_alarm_word(struct comm_host *host)
{
    return &host->words->alarm;
}

uint32_t comm_host_lost(struct comm_host *host, uint32_t view)
{
    uint64_t lost = atomic_load(&host->words->lost);

    return lost >> 32 >= view ? (uint32_t)lost : 0;
}
