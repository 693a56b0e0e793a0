/* SPDX-License-Identifier: MIT
 *
 * VGG-16 with batch-norm for CIFAR-10: 14,728,266 parameters.
 */
#include "nn/vgg.h"
#include "nn/zoo.h"

static base_status vgg16_text(const char *arguments, char **text_p)
{
    (void)arguments;
    *text_p = nn_vgg_text((const int[]){64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0,
                                        512, 512, 512, 0, -1});
    return BASE_OK;
}

const struct nn_zoo nn_zoo_vgg16 = {
    .name = "vgg16",
    .help = "VGG-16 with batch-norm for 32x32 images (14.7 M parameters)",
    .text = vgg16_text,
};
