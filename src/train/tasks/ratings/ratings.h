/* SPDX-License-Identifier: MIT
 *
 * What the files of the task `ratings` share: its work, and who does what of it.
 */
#ifndef TRAIN_TASKS_RATINGS_RATINGS_H
#define TRAIN_TASKS_RATINGS_RATINGS_H

#include "train/rated.h"
#include "train/session.h"

struct ratings {
    struct train_rated data;

    char *text; /* of the model, with its options */
    void *options;
    struct recsys_fit *fit;
    const float *placed; /* the memory that the fit computes with */
};

/* ---- tasks/ratings.c ---- */

/* The fit, with its buffers where the state is: it may have moved since the fit was last used. */
struct recsys_fit *ratings_fit(struct train_session *session);
/* Users from *first_p to *end_p - 1 are those of a share. */
void ratings_users(const struct ratings *r, struct data_share share, uint32_t *first_p,
                   uint32_t *end_p);

/* ---- files.c, scores.c: as in struct train_task ---- */

base_status ratings_write(struct train_session *session, const struct model_carrier *carrier,
                          struct store_save *save);
base_status ratings_read(struct train_session *session, const struct model_carrier *carrier,
                         const struct store_checkpoint *checkpoint);
base_status ratings_read_weights(struct train_session *session, const struct model_carrier *carrier,
                                 const char *path);

size_t ratings_score_count(const struct train_session *session);
base_status ratings_score(struct train_session *session, enum data_part part,
                          struct data_share share, double *score);
double ratings_graded(const struct train_session *session, const double *score);
void ratings_score_text(const struct train_session *session, const double *score,
                        struct base_str *text);
json_t *ratings_score_json(const struct train_session *session, const double *score);
const struct train_grade *ratings_grade(const struct train_session *session);

#endif
