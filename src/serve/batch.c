/* SPDX-License-Identifier: MIT
 *
 * A job whose input cannot be read is refused alone; the others of its batch do not notice. Images
 * are decoded here and not where requests come in, so that a large one holds up no connection; the
 * worker's threads decode the images of a batch side by side. Of a rating model, reading is all:
 * the threads answer the requests of a batch side by side.
 */
#include "serve/batch.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "serve/answer.h"

static base_status read_input(const struct serve_worker *w, struct serve_job *job)
{
    if (http_is_over(job->request))
        return base_fail(BASE_ERR_TIMEOUT, "the request has been answered");
    if (w->loaded == NULL)
        return base_fail(BASE_ERR_MEMORY, "the model's worker could not get its memory");
    return job->protocol->read(w->loaded, job);
}

/* Reads the jobs' inputs. Jobs to compute stay in the list; the others are answered here. */
static int read_inputs(const struct serve_worker *w, struct serve_job **jobs, int count)
{
    int kept = 0;

#pragma omp parallel for schedule(dynamic) if (count > 1)
    for (int i = 0; i < count; i++) {
        struct serve_job *job = jobs[i];

        job->st = read_input(w, job);
        if (job->st != BASE_OK)
            job->why = base_strdup(base_message());
    }
    for (int i = 0; i < count; i++) {
        if (jobs[i]->st == BASE_OK)
            jobs[kept++] = jobs[i];
        else
            serve_refuse_job(jobs[i]);
    }
    return kept;
}

/* x (n,C,H,W), y (n,outputs), in pieces of as many samples as a lane takes. */
static base_status compute(struct serve_worker *w, int piece, int n, const float *x, float *y)
{
    base_status st = BASE_OK;
    size_t values = nn_shape_values(w->loaded->model.about.input);

    for (int at = 0; at < n; at += piece)
        TRY(nn_lane_run(w->lane, n - at < piece ? n - at : piece, x + (size_t)at * values,
                        y + (size_t)at * (size_t)w->loaded->outputs));
out:
    return st;
}

/* Computes one job's samples where they are, but copies those of several jobs together first. */
static base_status compute_jobs(struct serve_version *v, struct serve_worker *w,
                                struct serve_job **jobs, int count, float **y_p)
{
    base_status st = BASE_OK;
    size_t values = nn_shape_values(w->loaded->model.about.input);
    const float *x = jobs[0]->samples.x;
    float *together = NULL;
    int n = 0;

    *y_p = NULL;
    for (int i = 0; i < count; i++)
        n += jobs[i]->samples.n;
    if (count > 1) {
        float *at;

        TRY(base_tensor((size_t)n * values, sizeof *together, "a batch", &together));
        x = at = together;
        for (int i = 0; i < count; i++) {
            size_t floats = (size_t)jobs[i]->samples.n * values;

            memcpy(at, jobs[i]->samples.x, floats * sizeof *at);
            at += floats;
        }
    }
    TRY(base_tensor((size_t)n * (size_t)w->loaded->outputs, sizeof **y_p, "answers", y_p));
    TRY(compute(w, v->settings.batch_size, n, x, *y_p));
    atomic_fetch_add(&v->counters.batches, 1);
    atomic_fetch_add(&v->counters.samples, (unsigned long long)n);
out:
    base_free(together);
    return st;
}

void serve_batch_run(struct serve_version *v, struct serve_worker *w, struct serve_job *batch)
{
    double began = base_now(), ended;
    struct serve_job **jobs;
    float *y = NULL;
    size_t row = 0;
    int count = 0;
    base_status st;

    for (struct serve_job *job = batch; job != NULL; job = job->next)
        count++;
    jobs = base_calloc((size_t)count, sizeof *jobs);
    for (int i = 0; i < count; i++, batch = batch->next)
        jobs[i] = batch;
    count = read_inputs(w, jobs, count);
    st = count > 0 && jobs[0]->answer == NULL ? compute_jobs(v, w, jobs, count, &y) : BASE_OK;
    ended = base_now();
    for (int i = 0; i < count; i++) {
        struct serve_job *job = jobs[i];
        size_t rows = (size_t)job->samples.n;

        serve_count_answer(&v->counters, began - job->arrived, ended - began);
        serve_recent_add(&v->recent, ended, ended - job->arrived);
        if (st == BASE_OK) {
            serve_answer_job(w->loaded, job,
                             y != NULL ? y + row * (size_t)w->loaded->outputs : NULL);
        } else {
            job->st = BASE_ERR_INTERNAL;
            job->why = base_strdup(base_message());
            serve_refuse_job(job);
        }
        row += rows;
    }
    base_free(y);
    base_free(jobs);
}
