/* SPDX-License-Identifier: MIT
 *
 * The small convolutional network of the Downpour report (conv, conv, maxpool, dropout, dense,
 * dense): 1,199,882 parameters.
 */
#include "base/mem.h"
#include "nn/zoo.h"

static base_status mnist_cnn_text(const char *arguments, char **text_p)
{
    (void)arguments;
    *text_p = base_strdup("input 1x28x28\n"
                          "classes 10\n"
                          "conv 32 3x3 name=conv1\n"
                          "relu\n"
                          "conv 64 3x3 name=conv2\n"
                          "relu\n"
                          "maxpool 2\n"
                          "dropout 0.25\n"
                          "dense 128 name=fc1\n"
                          "relu\n"
                          "dense classes name=fc2\n");
    return BASE_OK;
}

const struct nn_zoo nn_zoo_mnist_cnn = {
    .name = "mnist-cnn",
    .help = "two convolutions and two dense layers for 28x28 grey images (1.2 M parameters)",
    .text = mnist_cnn_text,
};
