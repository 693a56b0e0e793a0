/* SPDX-License-Identifier: MIT
 *
 * A trained model, opened to be used: checkpoint, what its manifest says, graph and weights. What
 * computes, what its data must look like and how pixels are normalised follow from it.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "model/about.h"
#include "model/weights.h"
#include "nn/infer.h"
#include "nn/net.h"
#include "store/checkpoint.h"

struct model {
    struct store_checkpoint checkpoint;
    struct model_about about;
    struct nn_graph *graph;
    struct model_weights weights;
};

/* Where `name` is: below runs_dir if there is such a thing, otherwise a path. base_free. */
char *model_place(const char *name, const char *runs_dir);

/* `name`: a run's name below runs_dir or its folder, a checkpoints folder, a step-N folder or a
 * copy of one. Of a run, the newest checkpoint that verifies, or the one marked best. */
base_status model_find(const char *name, const char *runs_dir, bool best,
                       struct store_checkpoint *checkpoint_p);
/* The network of that checkpoint; an error where it is of another task. */
base_status model_open(const char *name, const char *runs_dir, bool best, struct model *model_p);
/* The same in steps: model->checkpoint is open and all else zeros. The caller closes it. */
base_status model_load(struct model *model);
void model_close(struct model *model); /* accepts zeros */

/* The file with the weights that `name` stands for: all that model_open takes (the newest), or a
 * safetensors file. base_free. The message of a failure does not name `name`. */
base_status model_find_weights(const char *name, const char *runs_dir, char **path_p);

/* A network for up to `batch` samples, without gradients, with the kernels it was trained with. It
 * reads the model's buffers, so the model must outlive it. */
base_status model_net(const struct model *model, int batch, struct nn_net **net_p);

/* The model made ready to answer batches of up to `batch` samples, with kernels chosen for that.
 * Its graph must outlive it. */
base_status model_infer(const struct model *model, int batch, struct nn_infer **infer_p);

/* For data_open: images get the model's shape and are normalised as in training, not by the new
 * set's own statistics; classes and columns are matched by name. Of the table that it was trained
 * on, the rows that were kept for tests are the test part; of another one in one file, all are.
 * Points to the model's names. */
struct data_options model_data_options(const struct model *model);
/* An error unless the images' shape and the number of classes are those of the training. */
base_status model_check_data(const struct model *model, const struct data_info *info);

#endif
