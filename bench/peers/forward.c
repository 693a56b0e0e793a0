/* SPDX-License-Identifier: MIT
 *
 * The bare forward of a trained model, which bench/serving.py compares the server with:
 *
 *     forward RUN BATCH THREADS
 *
 * For every line on standard input, a number of forwards, it makes that many of BATCH samples and
 * prints {"seconds": the median, "cpu": CPU seconds of each}.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "model/model.h"
#include "nn/layer.h"
#include "nn/threads.h"

static double cpu_seconds(void)
{
    struct timespec at;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static base_status burst(struct nn_lane *lane, int batch, int count, const float *x, float *y)
{
    base_status st = BASE_OK;
    double *seconds = base_calloc((size_t)count, sizeof *seconds), before = cpu_seconds();

    for (int i = 0; i < count; i++) {
        double began = base_now();

        TRY(nn_lane_run(lane, batch, x, y));
        seconds[i] = base_now() - began;
    }
    before = (cpu_seconds() - before) / count;
    qsort(seconds, (size_t)count, sizeof *seconds, compare);
    printf("{\"seconds\": %.9f, \"cpu\": %.9f}\n", seconds[count / 2], before);
    fflush(stdout);
out:
    base_free(seconds);
    return st;
}

static base_status answer(const char *run, int batch, int threads)
{
    base_status st = BASE_OK;
    struct model model = {0};
    struct nn_infer *infer = NULL;
    struct nn_lane *lane = NULL;
    float *x = NULL, *y = NULL;
    size_t values, outputs;
    int count;

    nn_threads_set(threads);
    TRY(model_open(run, ".", false, &model));
    TRY(model_infer(&model, batch, &infer));
    TRY(nn_lane_new(infer, &lane));
    values = (size_t)batch * nn_shape_values(model.about.input);
    outputs = (size_t)nn_graph_node(model.graph, nn_graph_layers(model.graph) - 1)->out.c;
    x = base_calloc(values, sizeof *x);
    y = base_calloc((size_t)batch * outputs, sizeof *y);
    for (size_t i = 0; i < values; i++)
        x[i] = (float)(i % 97) / 97;
    while (scanf("%d", &count) == 1 && count > 0)
        TRY(burst(lane, batch, count, x, y));
out:
    base_free(y);
    base_free(x);
    nn_lane_free(lane);
    nn_infer_free(infer);
    model_close(&model);
    return st;
}

int main(int count, char **arguments)
{
    if (count != 4) {
        fprintf(stderr, "usage: forward RUN BATCH THREADS\n");
        return 2;
    }
    if (answer(arguments[1], atoi(arguments[2]), atoi(arguments[3])) == BASE_OK)
        return 0;
    fprintf(stderr, "%s\n", base_message());
    return 1;
}
