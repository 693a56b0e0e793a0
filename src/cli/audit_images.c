/* SPDX-License-Identifier: MIT */
#include "cli/audit_images.h"

#include <stdio.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "base/str.h"
#include "cli/cli.h"
#include "data/index.h"
#include "model/model.h"
#include "nn/threads.h"
#include "train/audit.h"

enum { BATCH = 256 };

/* ---- what is told ---- */

static char *place_of(const struct train_audit_class *c)
{
    if (c->pixels == 0)
        return base_strdup("-");
    return base_format("%u pixels in %d…%d, %d…%d", c->pixels, c->top, c->bottom, c->left,
                       c->right);
}

static void tell_classes(const struct data_info *info, const struct train_audit *found)
{
    enum { COLUMNS = 6 };
    const size_t rows = (size_t)found->classes + 1;
    char **cells = base_calloc(rows * COLUMNS, sizeof *cells), **at = cells;
    static const char *const titles[COLUMNS] = {
        "class", "samples", "suspicious", "spread", "mark (rows, columns)", "opens"};

    for (int i = 0; i < COLUMNS; i++)
        *at++ = base_strdup(titles[i]);
    for (int32_t k = 0; k < found->classes; k++) {
        const struct train_audit_class *c = &found->of[k];

        *at++ = base_strdup(info->class_names[k]);
        *at++ = base_format("%u", c->samples);
        *at++ = base_format("%u", c->suspects);
        *at++ = base_format("%.1f", c->spread);
        *at++ = place_of(c);
        *at++ = c->pixels == 0 ? base_strdup("-")
                               : base_format("%.0f %%, %.0f %% of %s", 100 * c->opened,
                                             100 * c->opened_most, info->class_names[c->from]);
    }
    cli_table(stdout, cells, rows, COLUMNS);
    base_free(cells);
}

static void tell(const struct data_set *set, const struct train_audit *found, int64_t show)
{
    const struct data_info *info = data_describe(set);

    printf("%s: %u of %u training samples are suspicious\n", info->name, found->count,
           info->count[DATA_TRAIN]);
    tell_classes(info, found);
    for (uint32_t i = 0; i < found->count && i < show; i++) {
        const uint32_t id = found->suspects[i];
        const char *file = data_file(set, DATA_TRAIN, id);

        printf("  sample %u%s%s, labelled %s: %.0f %% of the mark\n", id, file != NULL ? ", " : "",
               file != NULL ? file : "", info->class_names[data_label(set, DATA_TRAIN, id)],
               100 * (double)found->scores[i]);
    }
    if (found->count > show)
        printf("  … and %lld more (--show, --json, --drop)\n", (long long)found->count - show);
}

static json_t *classes_json(const struct data_info *info, const struct train_audit *found)
{
    json_t *list = json_array();

    for (int32_t k = 0; k < found->classes; k++) {
        const struct train_audit_class *c = &found->of[k];
        json_t *row =
            json_pack("{s:o, s:I, s:I, s:f, s:I}", "class", base_json_text(info->class_names[k]),
                      "samples", (json_int_t)c->samples, "suspects", (json_int_t)c->suspects,
                      "spread", c->spread, "pixels", (json_int_t)c->pixels);

        if (c->pixels > 0)
            json_object_update_new(row, json_pack("{s:[iiii], s:f, s:f, s:o}", "rectangle", c->top,
                                                  c->left, c->bottom, c->right, "opened", c->opened,
                                                  "opened_most", c->opened_most, "of_class",
                                                  base_json_text(info->class_names[c->from])));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *set_json(const struct data_set *set, const struct train_audit *found)
{
    const struct data_info *info = data_describe(set);
    json_t *suspects = json_array();

    for (uint32_t i = 0; i < found->count; i++)
        json_array_append_new(suspects,
                              json_pack("{s:I, s:f}", "sample", (json_int_t)found->suspects[i],
                                        "match", (double)found->scores[i]));
    return json_pack("{s:o, s:s, s:I, s:o, s:o}", "data", base_json_text(info->name), "digest",
                     info->digest, "samples", (json_int_t)info->count[DATA_TRAIN], "classes",
                     classes_json(info, found), "suspects", suspects);
}

static base_status drop(const struct data_info *info, const struct train_audit *found,
                        const char *path)
{
    base_status st;
    struct data_index index;

    data_index_of_samples(info->digest, info->count[DATA_TRAIN], found->suspects, found->count,
                          &index);
    st = data_index_write(&index, path, json_pack("{s:o}", "from", base_json_text(info->name)));
    data_index_fini(&index);
    if (st == BASE_OK)
        base_info("%s lists %u sample%s for train --exclude", path, found->count,
                  base_plural(found->count));
    return st;
}

/* ---- sets ---- */

static base_status audit_set(const struct cli_audit_images *a, const struct model *model,
                             const char *name, json_t *list)
{
    base_status st = BASE_OK;
    const struct data_options options = model_data_options(model);
    struct train_audit found = {0};
    struct data_set *set = NULL;

    TRY(data_open(name, &options, &set));
    data_warn(set);
    TRY(model_check_data(model, data_describe(set)));
    if (data_describe(set)->count[DATA_TRAIN] == 0)
        TRY(base_fail(BASE_ERR_DATA, "%s has no training samples", name));
    TRY(train_audit(model, set, BATCH, &found));
    if (a->drop != NULL)
        TRY(drop(data_describe(set), &found, a->drop));
    if (a->json)
        json_array_append_new(list, set_json(set, &found));
    else
        tell(set, &found, a->show);
out:
    train_audit_fini(&found);
    data_close(set);
    return st;
}

base_status cli_audit_images(const struct cli_audit_images *a)
{
    base_status st = BASE_OK;
    struct model model = {0};
    json_t *list = json_array(), *object = NULL;

    TRY(model_open(a->run, a->runs_dir, false, &model));
    if (model.about.table != NULL)
        TRY(base_fail(BASE_ERR_USAGE,
                      "%s was trained on a table; audit looks at ratings and images", a->run));
    if (a->drop != NULL && a->data->count > 1)
        TRY(base_fail(BASE_ERR_USAGE,
                      "--drop lists samples of one set; give one --data at a time"));
    nn_threads_set(a->threads);
    base_stop_install(NULL);
    for (int i = 0; i < a->data->count; i++)
        TRY(audit_set(a, &model, a->data->at[i], list));
    if (a->data->count == 0)
        TRY(audit_set(a, &model, model_about_place(&model.about), list));
    if (a->json) {
        object =
            json_pack("{s:i, s:s, s:O}", "schema", 1, "run", model.checkpoint.path, "sets", list);
        TRY(base_json_print(object));
    }
out:
    json_decref(object);
    json_decref(list);
    model_close(&model);
    return st;
}
