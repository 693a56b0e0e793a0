/* SPDX-License-Identifier: MIT
 *
 * One rank of MPI, driven by bench/collectives.py: mpirun -np N mpi SOCKET. What it reads and
 * answers is told in gloo.py beside it. Every rank reads its own orders: in MPI_Bcast they would
 * spin while others are measured.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const size_t most = 256u << 20;

static FILE *connect_to(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        perror(path);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return fdopen(fd, "r");
}

static void all_reduce(float *x, size_t bytes)
{
    MPI_Allreduce(MPI_IN_PLACE, x, (int)(bytes / sizeof *x), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    char line[128];
    size_t bytes;
    int rank, count;
    float *x;
    FILE *orders;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    x = aligned_alloc(2u << 20, most);
    memset(x, 0, most);
    orders = connect_to(argv[1]);
    while (fgets(line, sizeof line, orders) != NULL) {
        double start;

        if (sscanf(line, "%*s %*s %zu %d", &bytes, &count) != 2 || bytes > most)
            MPI_Abort(MPI_COMM_WORLD, 1);
        all_reduce(x, bytes);
        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        for (int i = 0; i < count; i++)
            all_reduce(x, bytes);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            dprintf(fileno(orders), "{\"seconds\":%.9f}\n", (MPI_Wtime() - start) / count);
    }
    MPI_Finalize();
    return 0;
}
