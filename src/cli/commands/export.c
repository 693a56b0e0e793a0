/* SPDX-License-Identifier: MIT
 *
 * paceline export: a trained model as a file of another program.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/cli.h"
#include "model/onnx.h"

struct args {
    const char *out, *runs_dir;
    struct model_onnx_options onnx;
    bool best, json;
};

/* The file's ending tells the format; ONNX is the only one. */
static base_status cmd_export_check_out(const char *out)
{
    size_t length = out != NULL ? strlen(out) : 0;

    if (length == 0)
        return base_fail(BASE_ERR_USAGE, "which file is to be written? -o model.onnx");
    if (length <= 5 || strcmp(out + length - 5, ".onnx") != 0)
        return base_fail(BASE_ERR_USAGE, "'%s' does not end in .onnx, the format that is written",
                         out);
    return BASE_OK;
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

static base_status cmd_export(void *args, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct args *a = args;
    struct model model = {0};
    struct model_onnx_summary summary;
    json_t *result = NULL;

    TRY(cmd_export_check_out(a->out));
    TRY(model_open(positional->at[0], a->runs_dir, a->best, &model));
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

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "out", .alias = "o", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(out),
     .help = "the file to write, such as model.onnx", .local = true},
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
    .help = "write a trained model as an ONNX file",
    .usage = "paceline export RUN|CHECKPOINT -o FILE.onnx [options]",
    .examples = "  paceline export vgg11-cifar10-1 -o vgg11.onnx\n"
                "  paceline export vgg11-cifar10-1 --best --fold -o vgg11.onnx\n",
    .completes = "RUN",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.runs_dir = "runs"},
    .min_positional = 1,
    .max_positional = 1,
    .run = cmd_export,
};
