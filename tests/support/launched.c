/* SPDX-License-Identifier: MIT */
#include "support/launched.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"

static struct comm_view all; /* its number counts the bodies */
static uint32_t own_id;      /* 0: not started yet */

const struct comm_transport *launched_by(void)
{
    for (size_t i = 0; getenv("OMPI_COMM_WORLD_SIZE") && i < comm_transport_count; i++)
        if (comm_transport_registry[i]->start != NULL)
            return comm_transport_registry[i];
    return NULL;
}

static void end(void)
{
    launched_by()->end();
}

static void start(void)
{
    crew_check(launched_by()->start(&all, &own_id) == BASE_OK);
    all.number = 0;
    atexit(end);
}

/* Memory of all processes, which are on one host: a file that the launcher's children agree on. */
static void *open_board(size_t bytes, char *path, size_t room)
{
    void *board;
    int fd;

    snprintf(path, room, "/dev/shm/paceline-test-%d-%u", (int)getppid(), all.number);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    crew_check(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    board = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    crew_check(board != MAP_FAILED);
    close(fd);
    return board;
}

void launched_run(int workers, crew_body *body, size_t board_bytes, void *argument)
{
    struct crew_worker me = {.argument = argument};
    struct comm_endpoint_setup setup = {.job = "launched"};
    struct comm_group *group;
    char path[80];

    if (own_id == 0)
        start();
    if ((int)all.size != workers)
        return;
    all.number++;
    me.index = (int)own_id - 1;
    me.id = own_id;
    setup.id = own_id;
    crew_check(comm_endpoint_open(&setup, &me.endpoint) == BASE_OK); /* each body has a new one */
    me.board = open_board(board_bytes, path, sizeof path);
    /* Opening one is a meeting: every process has left the body before, and has the board. */
    crew_check(comm_group_open(me.endpoint, &all, NULL, base_now() + 60, &group) == BASE_OK);
    comm_group_close(group);
    unlink(path);
    body(&me);
    comm_endpoint_close(me.endpoint);
    munmap(me.board, board_bytes);
}

void launched_view(struct comm_view *view_p)
{
    *view_p = all;
}
