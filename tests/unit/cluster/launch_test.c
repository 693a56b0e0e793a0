/* SPDX-License-Identifier: MIT
 *
 * Who am I: flags, the environments of four launchers, which of them counts, and what cannot be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/cli.h"
#include "cluster/launch.h"

static const struct cli_command command = {.name = "test", .options = cluster_options};
static const struct cluster_flags none = CLUSTER_FLAGS;

/* Words of a command line, and variables NAME=VALUE that are set meanwhile. */
static base_status find(struct cluster_launch *l, const char *words, const char *variables)
{
    struct cluster_flags flags = none;
    char *copy = strdup(words), *list = strdup(variables), *save = NULL, *argv[32];
    struct cli_positional positional;
    bool help;
    int argc = 0;
    base_status st;

    for (char *w = strtok_r(copy, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    for (char *v = strtok_r(list, " ", &save); v != NULL; v = strtok_r(NULL, " ", &save))
        putenv(v);
    st = cli_parse(&command, argc, argv, &flags, &positional, &help);
    if (st == BASE_OK)
        st = cluster_launch_find(&flags, l);
    cli_positional_fini(&positional);
    clearenv();
    free(copy);
    free(list);
    return st;
}

static void check(const char *words, const char *variables, const char *source, int workers,
                  int hosts, int host, const char *master, int port)
{
    struct cluster_launch l;

    assert_int_equal(find(&l, words, variables), BASE_OK);
    assert_string_equal(l.source, source);
    assert_int_equal(l.workers, workers);
    assert_int_equal(l.hosts, hosts);
    assert_int_equal(l.host, host);
    assert_string_equal(l.master, master);
    assert_int_equal(l.port, port);
    assert_false(l.idle);
}

static void test_flags(void **state)
{
    struct cluster_launch l;

    (void)state;
    check("", "", "flags", 1, 1, 0, "127.0.0.1", CLUSTER_PORT);
    check("--workers 4", "", "flags", 4, 1, 0, "127.0.0.1", CLUSTER_PORT);
    check("--num-nodes 3 --rank 2 --master-ip 10.0.0.1 --port 99 --workers 2", "", "flags", 2, 3, 2,
          "10.0.0.1", 99);
    check("--nnodes=3 --node_rank=0 --master_addr=10.0.0.1 --master-port 99 --nproc_per_node 2", "",
          "flags", 2, 3, 0, "10.0.0.1", 99);
    assert_int_equal(find(&l, "--workers 2", ""), BASE_OK);
    assert_false(l.listens);
    assert_int_equal(find(&l, "--port 0", ""), BASE_OK);
    assert_true(l.listens && l.port == 0);
    assert_int_equal(find(&l, "--num-nodes 2 --rank 0 --master-ip localhost", ""), BASE_OK);
    assert_true(l.listens);
    assert_string_equal(l.bind, l.master);
    assert_int_equal(find(&l, "--num-nodes 2 --rank 1 --master-ip 127.0.0.1", ""), BASE_OK);
    assert_string_equal(l.bind, "");
}

static void test_flags_refused(void **state)
{
    static const char *const bad[] = {
        "--num-nodes 2",
        "--num-nodes 2 --rank 2 --master-ip 127.0.0.1",
        "--rank 1",
        "--num-nodes 2 --rank 1",
        "--num-nodes 2 --rank 1 --master-ip 127.0.0.1 --port 0",
        "--bind here",
        "--workers 65",
        "--workers 0",
        "--workers -1",
        "--workers autoo",
        "--transport pigeons",
        "--num-nodes 2 --rank 0 --master-ip 127.0.0.1 --transport shm",
        "--silence 0",
        "--port 65536",
    };
    struct cluster_launch l;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(find(&l, bad[i], ""), BASE_ERR_USAGE);
    assert_int_equal(find(&l, "--num-nodes 2 --rank 1 --master-ip no.such.host.invalid", ""),
                     BASE_ERR_NETWORK);
}

static void test_auto(void **state)
{
    struct cluster_launch l;

    (void)state;
    assert_int_equal(find(&l, "", ""), BASE_OK);
    assert_false(l.undecided);
    assert_int_equal(find(&l, "--workers auto", ""), BASE_OK);
    assert_true(l.undecided);
    assert_int_equal(find(&l, "--workers auto", "PMI_RANK=0 PMI_SIZE=1"), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "not for jobs of PMI"));
}

#define TORCHRUN "RANK=2 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 GROUP_RANK=1 "
#define OPEN_MPI                                     \
    "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 " \
    "OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2 "
#define SLURM                                                                                      \
    "SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=5 SLURM_STEP_NUM_NODES=3 SLURM_LOCALID=0 SLURM_NODEID=2 " \
    "SLURM_STEP_TASKS_PER_NODE=2(x2),1 "

static void test_environments(void **state)
{
    (void)state;
    check("", TORCHRUN "MASTER_ADDR=10.0.0.1 MASTER_PORT=4000", "torchrun", 2, 2, 1, "10.0.0.1",
          4000);
    check("", TORCHRUN "MASTER_ADDR=10.0.0.1 MASTER_PORT=4000 TORCHELASTIC_USE_AGENT_STORE=True",
          "torchrun", 2, 2, 1, "10.0.0.1", 4001);
    check("", "RANK=1 WORLD_SIZE=3 MASTER_ADDR=127.0.0.1", "torchrun", 1, 3, 1, "127.0.0.1",
          CLUSTER_PORT);
    check("--master-ip 10.0.0.9", "RANK=1 WORLD_SIZE=3", "torchrun", 1, 3, 1, "10.0.0.9",
          CLUSTER_PORT);
    check("", "RANK=0 WORLD_SIZE=1", "torchrun", 1, 1, 0, "127.0.0.1", CLUSTER_PORT);
    check("--master-ip 10.0.0.9", OPEN_MPI, "Open MPI", 2, 2, 1, "10.0.0.9", CLUSTER_PORT);
    check("", "PMI_RANK=0 PMI_SIZE=1", "PMI", 1, 1, 0, "127.0.0.1", CLUSTER_PORT);
    check("", SLURM "MASTER_ADDR=127.0.0.1", "Slurm", 1, 3, 2, "127.0.0.1", CLUSTER_PORT);
    check("", SLURM "PMIX_RANK=3 MASTER_ADDR=127.0.0.1", "PMIx", 1, 3, 2, "127.0.0.1",
          CLUSTER_PORT);
    check("", SLURM "SLURM_STEP_NODELIST=localhost", "Slurm", 1, 3, 2, "127.0.0.1", CLUSTER_PORT);
    /* a batch script that is no step of srun */
    check("", "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0", "flags", 1, 1, 0, "127.0.0.1",
          CLUSTER_PORT);
}

/* The forms of Slurm's manual pages (slurm.conf, srun, scontrol, hostlist), and names of real
 * clusters. */
static void test_slurm_nodes(void **state)
{
    static const struct {
        const char *list, *first;
    } good[] = {
        {"n1", "n1"},
        {"n[1-2]", "n1"},
        {"gpu-01", "gpu-01"},
        {"gpu-[01-03]", "gpu-01"},
        {"lx[15,18,32-33]", "lx15"},
        {"linux[1-3,6]", "linux1"},
        {"tux[0-5,12,20-25]", "tux0"},
        {"node1,node[2-5,12]", "node1"},
        {"node[000-127,129],login1", "node000"},
        {"rack[0-63]_blade[0-41]", "rack0_blade0"},
        {"rack[01-3]-node[01-2,5]", "rack01-node01"},
        {"unit[0-31]rack[7]x", "unit0rack7x"},
        {"n[03-05,9].cluster.local,m1", "n03.cluster.local"},
        {"host-a,host-b", "host-a"},
        {"[7-9]", "7"},
    };
    static const char *const bad[] = {"",       ",n1",      "n[",      "n[]", "n[1",
                                      "n[a-b]", "n]",       "n[1[2]]", "n 1", "n1;m1",
                                      "n[-2]",  "n[1-2]x[", "n/1"};
    char name[CLUSTER_HOST_NAME], long_list[400];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(cluster_slurm_first(good[i].list, name), BASE_OK);
        assert_string_equal(name, good[i].first);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(cluster_slurm_first(bad[i], name), BASE_ERR_USAGE);
    memset(long_list, 'n', sizeof long_list);
    long_list[sizeof long_list - 1] = '\0';
    assert_int_equal(cluster_slurm_first(long_list, name), BASE_ERR_USAGE);
    memcpy(long_list + 250, "[0000000000-1]", 14);
    assert_int_equal(cluster_slurm_first(long_list, name), BASE_ERR_USAGE);
}

static void test_order(void **state)
{
    (void)state;
    check("--num-nodes 2 --rank 0 --master-ip 10.0.0.2", TORCHRUN OPEN_MPI "MASTER_ADDR=10.0.0.1",
          "flags", 1, 2, 0, "10.0.0.2", CLUSTER_PORT);
    check("", TORCHRUN OPEN_MPI SLURM "MASTER_ADDR=10.0.0.1", "torchrun", 2, 2, 1, "10.0.0.1",
          CLUSTER_PORT);
    check("", OPEN_MPI SLURM "MASTER_ADDR=10.0.0.1", "Open MPI", 2, 2, 1, "10.0.0.1", CLUSTER_PORT);
    /* the number of workers may be said in any case */
    check("--workers 7", OPEN_MPI "MASTER_ADDR=10.0.0.1", "Open MPI", 7, 2, 1, "10.0.0.1",
          CLUSTER_PORT);
}

static void test_idle(void **state)
{
    struct cluster_launch l;

    (void)state;
    assert_int_equal(find(&l, "",
                          "RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 "
                          "GROUP_RANK=1 MASTER_ADDR=127.0.0.1"),
                     BASE_OK);
    assert_true(l.idle);
}

static void test_environment_refused(void **state)
{
    static const char *const bad[] = {
        "RANK=4 WORLD_SIZE=4 MASTER_ADDR=127.0.0.1",
        "RANK=x WORLD_SIZE=4 MASTER_ADDR=127.0.0.1",
        "RANK=-1 WORLD_SIZE=4 MASTER_ADDR=127.0.0.1",
        "RANK=0 WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=99999",
        "RANK=0 WORLD_SIZE=1000 MASTER_ADDR=127.0.0.1",
        "RANK=5 WORLD_SIZE=3 MASTER_ADDR=127.0.0.1",
        "RANK=5 WORLD_SIZE=3", /* MASTER_ADDR or not */
        "RANK=1 WORLD_SIZE=3", /* three hosts, and where is the first? */
        "RANK= WORLD_SIZE=3",
        "RANK=0 WORLD_SIZE=0",
        "RANK=0 WORLD_SIZE=4 LOCAL_RANK=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1",
        "RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 GROUP_RANK=1 MASTER_ADDR=127.0.0.1",
        "RANK=4 WORLD_SIZE=5 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 GROUP_RANK=2 MASTER_ADDR=127.0.0.1",
        OPEN_MPI, /* two hosts, and where is the first? */
        "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 "
        "OMPI_COMM_WORLD_LOCAL_SIZE=2 MASTER_ADDR=127.0.0.1", /* dealt round robin */
        "SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=5 SLURM_STEP_NUM_NODES=3 SLURM_LOCALID=0 "
        "SLURM_NODEID=2 SLURM_STEP_TASKS_PER_NODE=2(x2 MASTER_ADDR=127.0.0.1",
    };
    struct cluster_launch l;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(find(&l, "", bad[i]), BASE_ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags), cmocka_unit_test(test_flags_refused),
        cmocka_unit_test(test_auto),  cmocka_unit_test(test_environments),
        cmocka_unit_test(test_order), cmocka_unit_test(test_slurm_nodes),
        cmocka_unit_test(test_idle),  cmocka_unit_test(test_environment_refused),
    };

    base_log_level(BASE_QUIET);
    clearenv();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
