/* SPDX-License-Identifier: MIT
 *
 * How good a rating model is.
 */
#include <math.h>

#include "train/tasks/ratings/ratings.h"

enum { SCORE_ABSOLUTE = TRAIN_SCORE_OWN, SCORES }; /* the loss is the squared error */

size_t ratings_score_count(const struct train_session *s)
{
    (void)s;
    return SCORES;
}

/* A share of a part is one of its users, with about as many ratings of the training part. */
base_status ratings_score(struct train_session *s, enum data_part part, struct data_share share,
                          double *score)
{
    base_status st = BASE_OK;
    const struct ratings *r = s->work;
    const struct recsys_division *parts = &r->data.parts;
    const struct recsys_rows *rows = part == DATA_TEST         ? &parts->test
                                     : part == DATA_VALIDATION ? &parts->validation
                                                               : &parts->by_user;
    struct recsys_score sum = {0};
    uint32_t first, end;

    ratings_users(r, share, &first, &end);
    TRY(recsys_score(ratings_fit(s), rows, first, end, &sum));
    score[TRAIN_SCORE_COUNT] = sum.count;
    score[TRAIN_SCORE_LOSS] = sum.squared;
    score[TRAIN_SCORE_CORRECT] = 0;
    score[SCORE_ABSOLUTE] = sum.absolute;
out:
    return st;
}

double ratings_graded(const struct train_session *s, const double *score)
{
    (void)s;
    return sqrt(train_score_mean(score, TRAIN_SCORE_LOSS));
}

void ratings_score_text(const struct train_session *s, const double *score, struct base_str *text)
{
    base_str_add(text, "RMSE %.4f, MAE %.4f (%.0f ratings)\n", ratings_graded(s, score),
                 train_score_mean(score, SCORE_ABSOLUTE), score[TRAIN_SCORE_COUNT]);
}

json_t *ratings_score_json(const struct train_session *s, const double *score)
{
    return json_pack("{s:o, s:o, s:o, s:I}", "loss",
                     base_json_number(train_score_mean(score, TRAIN_SCORE_LOSS)), "mae",
                     base_json_number(train_score_mean(score, SCORE_ABSOLUTE)), "rmse",
                     base_json_number(ratings_graded(s, score)), "samples",
                     (json_int_t)score[TRAIN_SCORE_COUNT]);
}

const struct train_grade *ratings_grade(const struct train_session *s)
{
    static const struct train_grade grade = {
        .key = "rmse", .title = "RMSE", .scale = 1, .decimals = 4, .unit = "", .scored = true};

    (void)s;
    return &grade;
}
