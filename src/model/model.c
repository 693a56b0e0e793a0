/* SPDX-License-Identifier: MIT */
#include "model/model.h"

#include <string.h>

#include "base/file.h"
#include "base/mem.h"

char *model_place(const char *name, const char *runs_dir)
{
    char *path = base_format("%s/%s", runs_dir, name);

    if (base_exists(path))
        return path;
    base_free(path);
    return base_strdup(name);
}

base_status model_load(struct model *m)
{
    base_status st = BASE_OK;
    char *path = NULL;

    TRY(base_prefix(model_about_from_json(m->checkpoint.manifest, &m->about), "%s/manifest.json",
                    m->checkpoint.path));
    if (m->about.task != NULL)
        TRY(base_fail(BASE_ERR_USAGE,
                      "%s is a rating model, which answers `paceline recommend` and `paceline "
                      "eval`",
                      m->checkpoint.path));
    TRY(nn_graph_new(m->about.model, m->checkpoint.path, m->about.input, m->about.classes,
                     &m->graph));
    TRY(model_weights_init(&m->weights, m->graph));
    TRY(store_checkpoint_file(&m->checkpoint, MODEL_WEIGHTS_FILE, &path));
    TRY(model_weights_read(&m->weights, path, false));
out:
    base_free(path);
    return st;
}

base_status model_find(const char *name, const char *runs_dir, bool best,
                       struct store_checkpoint *checkpoint_p)
{
    base_status st = BASE_OK;
    char *place = model_place(name, runs_dir);

    *checkpoint_p = (struct store_checkpoint){0};
    if (!base_exists(place))
        TRY(base_fail(
            BASE_ERR_USAGE,
            "there is no run or checkpoint '%s', here or in %s; 'paceline runs' lists the "
            "runs",
            name, runs_dir));
    TRY(store_checkpoint_open(place, best, checkpoint_p));
out:
    base_free(place);
    return st;
}

base_status model_open(const char *name, const char *runs_dir, bool best, struct model *model_p)
{
    base_status st = BASE_OK;

    *model_p = (struct model){0};
    TRY(model_find(name, runs_dir, best, &model_p->checkpoint));
    TRY(model_load(model_p));
out:
    if (st != BASE_OK)
        model_close(model_p);
    return st;
}

void model_close(struct model *model)
{
    model_weights_fini(&model->weights);
    nn_graph_free(model->graph);
    model_about_fini(&model->about);
    store_checkpoint_close(&model->checkpoint);
    *model = (struct model){0};
}

base_status model_find_weights(const char *name, const char *runs_dir, char **path_p)
{
    base_status st = BASE_OK;
    struct store_checkpoint checkpoint = {0};
    char *place = model_place(name, runs_dir);

    *path_p = NULL;
    if (!base_exists(place))
        TRY(base_fail(BASE_ERR_USAGE, "no such run, checkpoint or file"));
    if (!base_is_dir(place)) {
        *path_p = place;
        place = NULL;
        goto out;
    }
    TRY(store_checkpoint_open(place, false, &checkpoint));
    TRY(store_checkpoint_file(&checkpoint, MODEL_WEIGHTS_FILE, path_p));
out:
    store_checkpoint_close(&checkpoint);
    base_free(place);
    return st;
}

base_status model_net(const struct model *model, int batch, struct nn_net **net_p)
{
    return nn_net_new(model->graph,
                      &(struct nn_setup){.n_max = batch,
                                         .kernels = model->about.kernels,
                                         .weights = model->weights.weights,
                                         .statistics = model->weights.statistics},
                      net_p);
}

base_status model_infer(const struct model *model, int batch, struct nn_infer **infer_p)
{
    return nn_infer_new(model->graph,
                        &(struct nn_infer_setup){.weights = model->weights.weights,
                                                 .statistics = model->weights.statistics,
                                                 .n_max = batch},
                        infer_p);
}

struct data_options model_data_options(const struct model *model)
{
    const struct model_about *about = &model->about;
    struct data_options options = {
        .channels = about->input.c,
        .height = about->input.h,
        .width = about->input.w,
        .crop = about->crop,
        .has_statistics = true,
        .classes = about->classes,
        .class_names = about->labels,
        .table = about->table,
        .trained_on = about->digest,
        .test_share = about->test_share,
        .seed = about->test_seed,
    };

    memcpy(options.mean, about->mean, sizeof options.mean);
    memcpy(options.deviation, about->deviation, sizeof options.deviation);
    return options;
}

base_status model_check_data(const struct model *model, const struct data_info *info)
{
    struct nn_shape input = model->about.input;

    if (info->channels == input.c && info->height == input.h && info->width == input.w &&
        info->classes == model->about.classes)
        return BASE_OK;
    return base_fail(BASE_ERR_MODEL,
                     "%s is %dx%dx%d with %d classes, the model was trained on %dx%dx%d with %d",
                     info->name, info->channels, info->height, info->width, info->classes, input.c,
                     input.h, input.w, model->about.classes);
}
