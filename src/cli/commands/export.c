/* SPDX-License-Identifier: MIT
 *
 * paceline export: a trained model as a file of another program.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/export_arrays.h"
#include "model/onnx.h"
#include "recsys/saved.h"

struct args {
    const char *out, *runs_dir;
    struct model_onnx_options onnx;
    bool best, json;
};

static bool cmd_export_is_onnx(const char *out)
{
    const size_t length = strlen(out);

    return length > 5 && strcmp(out + length - 5, ".onnx") == 0;
}

static json_t *cmd_export_result_of(const struct args *a, const struct model *model,
                                    const struct model_onnx_summary *summary)
{
    struct nn_shape input = model->about.input;

    return json_pack(
        "{s:i, s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:[i,i,i], s:b}", "schema", 1, "run",
        model->checkpoint.path, "file", a->out, "format", "onnx", "opset", MODEL_ONNX_OPSET,
        "nodes", (json_int_t)summary->nodes, "folded", (json_int_t)summary->folded, "parameters",
        (json_int_t)nn_graph_parameters(model->graph), "bytes", (json_int_t)summary->bytes, "input",
        input.c, input.h, input.w, "normalises", a->onnx.normalise);
}

static void cmd_export_print_text(const struct args *a, const struct model *model,
                                  const struct model_onnx_summary *summary)
{
    struct nn_shape input = model->about.input;

    printf("%s: ONNX operator set %d, %zu operators, %sB\n", a->out, MODEL_ONNX_OPSET,
           summary->nodes, base_scaled((double)summary->bytes).text);
    printf("  input   float32 (batch, %d, %d, %d), %s%s\n", input.c, input.h, input.w,
           model_onnx_input(&model->about, a->onnx.normalise),
           a->onnx.normalise ? "" : ", which its metadata has");
    printf("  output  float32 (batch, %d), labels in its metadata\n", model->about.classes);
    if (a->onnx.fold)
        printf("  %zu batch norm%s folded\n", summary->folded,
               base_plural((int64_t)summary->folded));
}

static base_status cmd_export_onnx(const struct args *a, const char *name)
{
    base_status st = BASE_OK;
    struct model model = {0};
    struct model_onnx_summary summary;
    json_t *result = NULL;

    TRY(model_open(name, a->runs_dir, a->best, &model));
    TRY(model_onnx_write(&model, &a->onnx, a->out, &summary));
    if (a->json) {
        result = cmd_export_result_of(a, &model, &summary);
        TRY(base_json_print(result));
    } else {
        cmd_export_print_text(a, &model, &summary);
    }
out:
    json_decref(result);
    model_close(&model);
    return st;
}

/* Of a rating model, for which ONNX has no form: a folder. */
static base_status cmd_export_arrays(const struct args *a, const char *name)
{
    base_status st = BASE_OK;
    struct store_checkpoint checkpoint = {0};
    json_t *files = NULL, *result = NULL;

    TRY(model_find(name, a->runs_dir, a->best, &checkpoint));
    if (!recsys_saved_is(checkpoint.manifest))
        TRY(base_fail(BASE_ERR_USAGE,
                      "'%s' does not end in .onnx, the format that networks are written in",
                      a->out));
    if (a->onnx.fold || a->onnx.normalise)
        TRY(base_fail(BASE_ERR_USAGE,
                      "--fold and --normalise are of networks; %s is a rating model", name));
    TRY(cli_export_arrays(&checkpoint, a->out, &files));
    if (a->json) {
        result = json_pack("{s:i, s:o, s:o, s:s, s:O}", "schema", 1, "run",
                           base_json_text(checkpoint.path), "folder", base_json_text(a->out),
                           "format", "npy", "files", files);
        TRY(base_json_print(result));
    } else {
        printf("%s: %zu files\n", a->out, json_array_size(files));
    }
out:
    json_decref(files);
    json_decref(result);
    store_checkpoint_close(&checkpoint);
    return st;
}

static base_status cmd_export(void *args, const struct cli_positional *positional)
{
    const struct args *a = args;

    if (a->out == NULL || a->out[0] == '\0')
        return base_fail(BASE_ERR_USAGE, "which file is to be written? -o model.onnx");
    return cmd_export_is_onnx(a->out) ? cmd_export_onnx(a, positional->at[0])
                                      : cmd_export_arrays(a, positional->at[0]);
}

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "out", .alias = "o", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(out),
     .help = "the file to write, such as model.onnx; of a rating model a folder", .local = true},
    {.name = "fold", .kind = BASE_FLAG, .offset = AT(onnx.fold),
     .help = "batch norms become part of the convolutions and dense layers before them", .local = true},
    {.name = "normalise", .kind = BASE_FLAG, .offset = AT(onnx.normalise),
     .help = "the file takes pixels from 0 to 255 and normalises them itself", .local = true},
    {.name = "best", .kind = BASE_FLAG, .offset = AT(best),
     .help = "the checkpoint with the best validation loss instead of the newest", .local = true},
    {.name = "runs-dir", .argument = "DIR", .kind = BASE_TEXT, .offset = AT(runs_dir),
     .help = "where runs are kept", .local = true},
    {.name = "json", .kind = BASE_FLAG, .offset = AT(json),
     .help = "one JSON object on standard output", .local = true},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_export = {
    .name = "export",
    .help = "write a trained model as an ONNX file, a rating model as arrays of NumPy",
    .usage = "paceline export RUN|CHECKPOINT -o FILE.onnx|FOLDER [options]",
    .examples = "  paceline export vgg11-cifar10-1 -o vgg11.onnx\n"
                "  paceline export vgg11-cifar10-1 --best --fold -o vgg11.onnx\n"
                "  paceline export films -o films-arrays\n",
    .completes = "RUN",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.runs_dir = "runs"},
    .min_positional = 1,
    .max_positional = 1,
    .run = cmd_export,
};
