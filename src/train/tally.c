/* SPDX-License-Identifier: MIT */
#include "train/tally.h"

#include "data/table.h"

static double unit_of(const struct data_info *info)
{
    return info->table->target.deviation;
}

/* A standardised prediction, moved to where the numbers can be. */
static float within(const struct data_column *target, float output)
{
    const float lowest = (float)((target->lowest - target->mean) / target->deviation);
    const float highest = (float)((target->highest - target->mean) / target->deviation);

    return target->lowest == target->highest ? output
           : output < lowest                 ? lowest
           : output > highest                ? highest
                                             : output;
}

void train_tally_init(struct train_tally *t, const struct data_info *info)
{
    *t = (struct train_tally){.info = info};
    if (!data_is_regression(info))
        train_metrics_init(&t->metrics, info->classes);
}

void train_tally_fini(struct train_tally *t)
{
    train_metrics_fini(&t->metrics);
    *t = (struct train_tally){0};
}

base_status train_tally_add(struct train_tally *t, const struct data_batch *b,
                            const struct nn_net *net, const struct nn_outcome *outcome)
{
    base_status st = BASE_OK;
    float output;

    if (!data_is_regression(t->info)) {
        train_metrics_add(&t->metrics, b->labels, outcome->predicted, (int)b->count,
                          outcome->loss_sum);
        goto out;
    }
    for (uint32_t i = 0; i < b->count; i++) {
        TRY(nn_net_output(net, nn_net_last(net), (int)i, &output));
        output = within(&t->info->table->target, output);
        train_errors_add(&t->errors, &b->numbers[i], &output, 1, 0);
    }
    t->errors.loss_sum += outcome->loss_sum;
out:
    return st;
}

uint64_t train_tally_count(const struct train_tally *t)
{
    return data_is_regression(t->info) ? t->errors.count : t->metrics.count;
}

size_t train_tally_numbers(const struct data_info *info)
{
    return data_is_regression(info) ? train_errors_numbers() : train_metrics_numbers(info->classes);
}

void train_tally_pack(const struct train_tally *t, double *numbers)
{
    if (data_is_regression(t->info))
        train_errors_pack(&t->errors, numbers);
    else
        train_metrics_pack(&t->metrics, numbers);
}

void train_tally_unpack(struct train_tally *t, const struct data_info *info, const double *numbers)
{
    *t = (struct train_tally){.info = info};
    if (data_is_regression(info))
        train_errors_unpack(&t->errors, numbers);
    else
        train_metrics_unpack(&t->metrics, info->classes, numbers);
}

const struct train_grade *train_tally_grade(const struct data_info *info)
{
    static const struct train_grade accuracy = {"accuracy", "accuracy", 100, 2, " %", true};
    static const struct train_grade r2 = {"r2", "R²", 1, 4, "", false};

    return data_is_regression(info) ? &r2 : &accuracy;
}

double train_tally_value(const struct train_tally *t)
{
    return data_is_regression(t->info) ? train_errors_r2(&t->errors)
                                       : train_metrics_accuracy(&t->metrics);
}

void train_tally_line(const struct train_tally *t, struct base_str *text)
{
    if (data_is_regression(t->info))
        base_str_add(text, "loss %.4f, MAE %.5g, RMSE %.5g, ", train_errors_loss(&t->errors),
                     train_errors_mae(&t->errors, unit_of(t->info)),
                     train_errors_rmse(&t->errors, unit_of(t->info)));
    else
        base_str_add(text, "loss %.4f, ", train_metrics_loss(&t->metrics));
    train_grade_text(train_tally_grade(t->info), train_tally_value(t), text);
}

void train_tally_text(const struct train_tally *t, struct base_str *text)
{
    if (data_is_regression(t->info))
        return;
    base_str_add(text, "\n");
    train_metrics_text(&t->metrics, t->info->class_names, text);
}

json_t *train_tally_json(const struct train_tally *t)
{
    return data_is_regression(t->info) ? train_errors_json(&t->errors, unit_of(t->info))
                                       : train_metrics_json(&t->metrics, t->info->class_names);
}
