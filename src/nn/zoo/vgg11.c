/* SPDX-License-Identifier: MIT
 *
 * VGG-11 with batch-norm for CIFAR-10: 9,231,114 parameters.
 */
#include "nn/vgg.h"
#include "nn/zoo.h"

static base_status vgg11_text(const char *arguments, char **text_p)
{
    (void)arguments;
    *text_p = nn_vgg_text((const int[]){64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0, -1});
    return BASE_OK;
}

const struct nn_zoo nn_zoo_vgg11 = {
    .name = "vgg11",
    .help = "VGG-11 with batch-norm for 32x32 images (9.2 M parameters)",
    .text = vgg11_text,
};
