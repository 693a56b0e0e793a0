/* SPDX-License-Identifier: MIT
 *
 * Checkpoints of a rating model, also of one that gets more ratings.
 */
#include "base/mem.h"
#include "recsys/saved.h"
#include "train/tasks/ratings/ratings.h"

static base_status ratings_bring(void *context, size_t from, size_t count, const float **memory_p)
{
    const struct model_carrier *carrier = context;

    return carrier->bring(carrier->context, -1, from, count, memory_p);
}

static base_status ratings_take(void *context, size_t from, size_t count, const float *memory)
{
    const struct model_carrier *carrier = context;

    return carrier->take(carrier->context, -1, from, count, memory);
}

static struct recsys_carrier ratings_carrier(const struct model_carrier *carrier)
{
    return (struct recsys_carrier){ratings_bring, ratings_take, (void *)(uintptr_t)carrier};
}

base_status ratings_write(struct train_session *s, const struct model_carrier *carrier,
                          struct store_save *save)
{
    const struct ratings *r = s->work;
    const struct recsys_carrier own = ratings_carrier(carrier);

    return recsys_saved_write(ratings_fit(s), r->data.set, carrier != NULL ? &own : NULL, save);
}

/* The checkpoint is of fewer ratings. Other workers may hold some of the state, so that it is made
 * as a whole first. */
static base_status ratings_grow(struct train_session *s, const struct recsys_carrier *carrier,
                                const struct store_checkpoint *checkpoint)
{
    base_status st = BASE_OK;
    struct ratings *r = s->work;
    struct recsys_fit *fit = r->fit;
    float *whole = NULL;

    TRY(base_tensor(fit->floats, sizeof *whole, "a model that grows", &whole));
    recsys_fit_place(fit, whole);
    TRY(recsys_fit_start(fit));
    TRY(recsys_saved_grow(fit, r->data.set, checkpoint));
    for (int i = 0; i < fit->buffer_count; i++) {
        const struct recsys_buffer *b = &fit->buffers[i];

        if (!b->passing)
            TRY(carrier->take(carrier->context, b->offset, (size_t)b->rows * b->width, b->at));
    }
out:
    r->placed = NULL;
    ratings_fit(s);
    base_free(whole);
    return st;
}

base_status ratings_read_weights(struct train_session *s, const struct model_carrier *carrier,
                                 const char *path)
{
    const struct recsys_carrier own = ratings_carrier(carrier);

    return recsys_saved_read(ratings_fit(s), path, carrier != NULL ? &own : NULL);
}

base_status ratings_read(struct train_session *s, const struct model_carrier *carrier,
                         const struct store_checkpoint *checkpoint)
{
    base_status st = BASE_OK;
    const struct recsys_carrier own = ratings_carrier(carrier);
    char *path = NULL;

    if (train_session_is_grown(s) && carrier != NULL) {
        TRY(ratings_grow(s, &own, checkpoint));
    } else if (train_session_is_grown(s)) {
        TRY(recsys_saved_grow(ratings_fit(s), ((struct ratings *)s->work)->data.set, checkpoint));
    } else {
        TRY(store_checkpoint_file(checkpoint, RECSYS_MODEL_FILE, &path));
        TRY(ratings_read_weights(s, carrier, path));
    }
    TRY(train_session_load_position(s));
out:
    base_free(path);
    return st;
}
