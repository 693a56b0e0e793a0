/* SPDX-License-Identifier: MIT */
#include "lab/rate.h"

#include <math.h>
#include <poll.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "lab/child.h"
#include "report/story.h"

enum { REDRAW = 500 /* milliseconds */, WINDOWS = 20 /* of smoothing, in all steps */ };
#define DIVERGED 4.0 /* times the lowest loss */

/* ---- arithmetic ---- */

/* Steps that a smoothed value looks at, to each side. */
static size_t window_of(const struct lab_rate *rate)
{
    size_t window = rate->count / WINDOWS;

    return window > 1 ? window : 1;
}

/* A running mean tells when the loss has risen from its lowest value for good. */
static void cut(struct lab_rate *rate)
{
    double weight = 1 / (double)(1 + window_of(rate)), mean = NAN, least = INFINITY;

    for (size_t i = 0; i < rate->count; i++) {
        mean = isnan(mean) ? rate->losses[i] : mean + weight * (rate->losses[i] - mean);
        least = fmin(least, mean);
        if (!isfinite(mean) || mean > DIVERGED * least) {
            rate->count = i;
            rate->diverged = true;
        }
    }
}

/* Means that look as far ahead as back, so that nothing moves to higher rates; nearer steps count
 * more. */
static void smooth(struct lab_rate *rate)
{
    size_t window = window_of(rate);

    for (size_t i = 0; i < rate->count; i++) {
        size_t from = i > window ? i - window : 0;
        double sum = 0, weights = 0;

        for (size_t j = from; j < rate->count && j <= i + window; j++) {
            double weight = (double)(window + 1 - (j > i ? j - i : i - j));

            sum += weight * rate->losses[j];
            weights += weight;
        }
        rate->smooth[i] = sum / weights;
    }
}

/* Before the lowest loss, where it falls most from one window to the next. */
static void suggest(struct lab_rate *rate)
{
    size_t window = window_of(rate), lowest = 0;
    double steepest = 0;

    for (size_t i = 0; i < rate->count; i++)
        if (rate->smooth[i] < rate->smooth[lowest])
            lowest = i;
    rate->suggested = rate->lowest = NAN;
    for (size_t i = window; i + window < rate->count && i <= lowest; i++) {
        double fall = rate->smooth[i - window] - rate->smooth[i + window];

        if (fall > steepest) {
            steepest = fall;
            rate->suggested = rate->rates[i];
            rate->lowest = rate->rates[lowest];
        }
    }
}

void lab_rate_judge(struct lab_rate *rate)
{
    cut(rate);
    smooth(rate);
    suggest(rate);
}

/* ---- the training ---- */

static double rate_at(const struct lab_rate *rate, double step)
{
    return rate->low * pow(rate->high / rate->low, (step - 1) / (double)(rate->steps - 1));
}

/* The run's losses; of many steps a value is the mean of a few. */
static void read_losses(const char *run, struct lab_rate *rate)
{
    struct report_story *story = base_calloc(1, sizeof *story);
    const struct report_curve *loss;

    report_story_read(run, story);
    loss = report_story_curve(story, "step.loss");
    for (size_t i = 0; loss != NULL && i < loss->count; i++) {
        const struct report_bin *bin = &loss->bins[i];
        double count = (double)bin->count;

        rate->rates[i] = rate_at(rate, bin->x / count);
        rate->losses[i] = bin->y / count;
        rate->count++;
    }
    report_story_fini(story);
    base_free(story);
}

/* Until it has ended; a signal asks it to. */
static void wait_for(const struct lab_child *child)
{
    bool asked = false;

    while (poll(&(struct pollfd){.fd = child->alive, .events = POLLIN}, 1, REDRAW) <= 0)
        if (base_stop_signal() != 0 && !asked) {
            lab_child_ask(child);
            asked = true;
        }
}

static char **words_of(const char *folder, char *const *options, const struct lab_rate *rate)
{
    size_t count = 0, at = 0;
    char **words;

    while (options[count] != NULL)
        count++;
    words = base_calloc(count + 16, sizeof *words);
    words[at++] = base_strdup("paceline");
    words[at++] = base_strdup("train");
    for (size_t i = 0; i < count; i++)
        words[at++] = base_strdup(options[i]);
    words[at++] = base_format("--lr=%.17g", rate->low);
    words[at++] = base_format("--final-lr=%.17g", rate->high / rate->low);
    words[at++] = base_format("--steps=%lld", (long long)rate->steps);
    words[at++] = base_format("--runs-dir=%s/runs", folder);
    for (const char *const *word =
             (const char *const[]){"--schedule=exponential", "--run=lr", "--no-test",
                                   "--no-checkpoint", "--eval-every=0", "--quiet", "--json", NULL};
         *word != NULL; word++)
        words[at++] = base_strdup(*word);
    return words;
}

base_status lab_rate_run(const char *folder, char *const *options, struct lab_rate *rate)
{
    base_status st = BASE_OK, ended;
    char *run = base_format("%s/runs/lr", folder), **words = words_of(folder, options, rate);
    struct lab_child child = {.alive = -1, .out = -1, .err = -1};
    json_t *result = NULL;

    rate->rates = base_calloc(REPORT_CURVE_BINS, sizeof *rate->rates);
    rate->losses = base_calloc(REPORT_CURVE_BINS, sizeof *rate->losses);
    rate->smooth = base_calloc(REPORT_CURVE_BINS, sizeof *rate->smooth);
    TRY(base_remove_tree(run));
    TRY(lab_child_start(LAB_SELF, words, &child));
    wait_for(&child);
    ended = lab_child_finish(&child, "lab lr", &result);
    if (base_stop_signal() != 0)
        TRY(base_fail(BASE_ERR_INTERRUPTED, "interrupted; nothing is known yet"));
    if (ended == BASE_ERR_PEER_LOST) /* killed: what it had told is of less than all rates */
        TRY(ended);
    read_losses(run, rate);
    /* A rate that is too high for the weights ends the training: that is what is looked for. */
    if (rate->count < LAB_RATE_LEAST)
        TRY(ended != BASE_OK ? ended
                             : base_fail(BASE_ERR_DATA,
                                         "the run has told the losses of %zu steps, at least %d "
                                         "are needed; a model that learns in sweeps has none",
                                         rate->count, LAB_RATE_LEAST));
    rate->diverged = ended != BASE_OK;
    lab_rate_judge(rate);
out:
    lab_child_close(&child);
    json_decref(result);
    for (size_t i = 0; words[i] != NULL; i++)
        base_free(words[i]);
    base_free(words);
    base_free(run);
    return st;
}

void lab_rate_fini(struct lab_rate *rate)
{
    base_free(rate->rates);
    base_free(rate->losses);
    base_free(rate->smooth);
    *rate = (struct lab_rate){0};
}

struct report_chart lab_rate_chart(const struct lab_rate *rate, struct report_series series[2],
                                   struct report_mark *mark)
{
    series[0] = (struct report_series){
        .name = "smoothed", .x = rate->rates, .y = rate->smooth, .count = rate->count};
    series[1] = (struct report_series){
        .name = "loss", .x = rate->rates, .y = rate->losses, .count = rate->count};
    *mark = (struct report_mark){rate->suggested, "suggested"};
    return (struct report_chart){.title = "Loss while the learning rate rises",
                                 .x_title = "learning rate",
                                 .y_title = "loss of the batch",
                                 .log_x = true,
                                 .series = series,
                                 .series_count = 2,
                                 .marks = mark,
                                 .mark_count = isfinite(rate->suggested)};
}
