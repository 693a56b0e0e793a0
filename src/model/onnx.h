/* SPDX-License-Identifier: MIT
 *
 * A trained model as an ONNX file (docs/export.md): operator set 17, weights under their PyTorch
 * names, a batch axis of any length, one input and one output. Labels and normalisation are in its
 * metadata.
 */
#ifndef MODEL_ONNX_H
#define MODEL_ONNX_H

#include "model/model.h"

enum { MODEL_ONNX_OPSET = 17 };

struct model_onnx_options {
    bool fold;      /* batch norms into the convolutions before them */
    bool normalise; /* the file takes pixels, 0 … 255, and normalises them itself */
};

struct model_onnx_summary {
    size_t nodes, folded; /* operators; batch norms that are none of them any more */
    uint64_t bytes;
};

/* Replaces the file atomically. Copies one tensor at a time, with `fold` all of them. */
base_status model_onnx_write(const struct model *model, const struct model_onnx_options *options,
                             const char *path, struct model_onnx_summary *summary_p);

/* What the file's input takes: pixels, normalised or not, or the features of a table's row. */
const char *model_onnx_input(const struct model_about *about, bool normalise);

#endif
