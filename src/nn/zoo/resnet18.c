/* SPDX-License-Identifier: MIT
 *
 * ResNet-18 (He et al. 2015) in its CIFAR form: a 3x3 stem without pool, four stages of two
 * blocks, 1x1 projections where the shape changes: 11,173,962 parameters. Tensors have the names
 * of the widespread PyTorch version (conv1, layer1.0.conv1, layer2.0.shortcut.0, linear).
 */
#include "base/str.h"
#include "nn/zoo.h"

static void add_block(struct base_str *s, int stage, int block, int width, int stride)
{
    base_str_add(s, "save in%d.%d\n", stage, block);
    base_str_add(s, "conv %d 3x3 pad=1 stride=%d bias=off name=layer%d.%d.conv1\n", width, stride,
                 stage, block);
    base_str_add(s, "bn name=layer%d.%d.bn1\nrelu\n", stage, block);
    base_str_add(s, "conv %d 3x3 pad=1 bias=off name=layer%d.%d.conv2\n", width, stage, block);
    base_str_add(s, "bn name=layer%d.%d.bn2\n", stage, block);
    if (stride == 1) {
        base_str_add(s, "add in%d.%d\nrelu\n", stage, block);
        return;
    }
    base_str_add(s, "save main%d.%d\nload in%d.%d\n", stage, block, stage, block);
    base_str_add(s, "conv %d 1x1 stride=%d bias=off name=layer%d.%d.shortcut.0\n", width, stride,
                 stage, block);
    base_str_add(s, "bn name=layer%d.%d.shortcut.1\n", stage, block);
    base_str_add(s, "add main%d.%d\nrelu\n", stage, block);
}

static base_status resnet18_text(const char *arguments, char **text_p)
{
    struct base_str s = {0};

    (void)arguments;
    base_str_add(&s, "input 3x32x32\nclasses 10\n");
    base_str_add(&s, "conv 64 3x3 pad=1 bias=off name=conv1\nbn name=bn1\nrelu\n");
    for (int stage = 1; stage <= 4; stage++)
        for (int block = 0; block < 2; block++)
            add_block(&s, stage, block, 32 << stage, stage > 1 && block == 0 ? 2 : 1);
    base_str_add(&s, "gavgpool\ndense classes name=linear\n");
    *text_p = base_str_take(&s);
    return BASE_OK;
}

const struct nn_zoo nn_zoo_resnet18 = {
    .name = "resnet18",
    .help = "ResNet-18 for 32x32 images (11.2 M parameters)",
    .text = resnet18_text,
};
