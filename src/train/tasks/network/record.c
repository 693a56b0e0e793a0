/* SPDX-License-Identifier: MIT
 *
 * --record LAYER:npy: after each epoch rank 0 passes some training samples, as they are, through
 * the model as it is then, and keeps what layers make of them. Their numbers are those of the
 * source's training part, as in an index (data/index.h).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/npy.h"
#include "data/index.h"
#include "train/record.h"
#include "train/tasks/network/network.h"

static const char USUAL[] = "0..15";

/* ---- which samples ---- */

/* "A..B"; false: it is something else. */
static bool network_read_range(const char *text, uint64_t *first_p, uint64_t *last_p)
{
    char *end = NULL;

    if (text[0] < '0' || text[0] > '9')
        return false;
    *first_p = strtoull(text, &end, 10);
    if (strncmp(end, "..", 2) != 0 || end[2] < '0' || end[2] > '9')
        return false;
    *last_p = strtoull(end + 2, &end, 10);
    return *end == '\0';
}

static int network_compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* The samples of the training part whose numbers are in the range or, if there is one, the index.
 */
static void network_choose(struct network *n, uint64_t first, uint64_t last,
                           const struct data_index *index)
{
    const uint32_t count = n->info->count[DATA_TRAIN];

    n->recorded = base_calloc((size_t)count + 1, sizeof *n->recorded);
    n->recorded_count = 0;
    for (uint32_t id = 0; id < count; id++) {
        uint32_t number = data_number_in_source(n->samples.set, DATA_TRAIN, id);
        bool wanted = index->samples != NULL
                          ? bsearch(&number, index->samples, index->count, sizeof number,
                                    network_compare_numbers) != NULL
                          : number >= first && number <= last;

        if (wanted)
            n->recorded[n->recorded_count++] = id;
    }
}

static base_status network_check_divided(const struct train_session *s)
{
    const struct network *n = s->work;

    if (s->task->record == NULL)
        return base_fail(BASE_ERR_USAGE,
                         "--record LAYER:npy is for networks of samples; %s has "
                         "pairs",
                         s->job->model);
    if (n->lends.weights)
        return base_fail(BASE_ERR_USAGE,
                         "--record LAYER:npy needs all weights on a worker, which strategy %s "
                         "divides",
                         s->strategy->name);
    return BASE_OK;
}

base_status network_record_choose(struct train_session *s)
{
    base_status st = BASE_OK;
    struct network *n = s->work;
    struct data_index index = {0};
    const char *which = s->job->record_samples != NULL ? s->job->record_samples : USUAL;
    uint64_t first = 0, last = 0;

    TRY(train_record_check(&s->job->record, n->graph));
    if (!train_record_wants_whole(&s->job->record))
        goto out;
    TRY(network_check_divided(s));
    if (!network_read_range(which, &first, &last)) {
        TRY(base_prefix(data_index_read(which, &index), "--record-samples"));
        TRY(base_prefix(data_index_check(&index, n->info->digest, false), "--record-samples %s",
                        which));
    }
    network_choose(n, first, last, &index);
    if (n->recorded_count == 0)
        TRY(base_fail(BASE_ERR_USAGE,
                      "--record-samples %s: none of these is in the training part, which has %u "
                      "samples",
                      which, n->info->count[DATA_TRAIN]));
out:
    data_index_fini(&index);
    return st;
}

/* ---- after an epoch ---- */

/* Whose activations the other files have, and in which order. */
static base_status network_write_numbers(const struct network *n, const char *folder)
{
    base_status st = BASE_OK;
    const size_t count = n->recorded_count;
    char *path = base_format("%s/samples.npy", folder);
    uint32_t *numbers = base_calloc(count, sizeof *numbers);
    struct base_npy npy = {0};

    for (size_t i = 0; i < count; i++)
        numbers[i] = data_number_in_source(n->samples.set, DATA_TRAIN, n->recorded[i]);
    TRY(base_npy_begin(path, "<u4", &count, 1, &npy));
    TRY(base_npy_write(&npy, numbers, count * sizeof *numbers));
    TRY(base_npy_commit(&npy));
out:
    base_npy_end(&npy);
    base_free(numbers);
    base_free(path);
    return st;
}

/* Every chosen sample once, without augmentation or dropout. */
static base_status network_pass_chosen(struct network *n)
{
    base_status st = BASE_OK;
    struct data_loader *loader = NULL;
    struct nn_outcome outcome;
    struct data_batch b;

    TRY(data_loader_new(n->samples.set, DATA_TRAIN, (uint32_t)n->net_piece, (struct data_share){0},
                        0, (struct data_augment){0}, &loader));
    TRY(data_loader_begin(loader, 0, n->recorded, n->recorded_count));
    for (;;) {
        TRY(data_loader_next(loader, &b));
        if (b.count == 0)
            break;
        TRY(nn_net_forward(
            n->net, &(struct nn_batch){.n = (int)b.count, .x = b.x, .samples = {.ids = b.ids}},
            false, &outcome));
    }
out:
    data_loader_free(loader);
    return st;
}

base_status network_record(struct train_session *s)
{
    base_status st = BASE_OK, kept;
    struct network *n = s->work;
    struct train_record *record = s->journal.record;
    char *folder = base_format("%s/activations", s->run.path);

    if (n->recorded == NULL || n->net == NULL)
        goto out;
    network_find_weights(s);
    st = train_record_begin(record, folder, s->state.position.epoch, n->recorded_count);
    if (st == BASE_OK)
        st = network_pass_chosen(n);
    kept = train_record_end(record, st == BASE_OK);
    TRY(st);
    TRY(kept);
    TRY(network_write_numbers(n, folder));
out:
    base_free(folder);
    return st;
}
