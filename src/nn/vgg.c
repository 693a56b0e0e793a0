/* SPDX-License-Identifier: MIT
 *
 * VGG with batch-norm for 32x32 images: 3x3 convolutions with bias, five pools down to 1x1, and
 * one dense layer. Layers are named as torchvision's `features` and `classifier`.
 */
#include "nn/vgg.h"

#include "base/str.h"

char *nn_vgg_text(const int *widths)
{
    struct base_str s = {0};
    int index = 0;

    base_str_add(&s, "input 3x32x32\nclasses 10\n");
    for (; *widths >= 0; widths++) {
        if (*widths == 0) {
            base_str_add(&s, "maxpool 2 name=features.%d\n", index++);
            continue;
        }
        base_str_add(&s, "conv %d 3x3 pad=1 name=features.%d\n", *widths, index);
        base_str_add(&s, "bn name=features.%d\n", index + 1);
        base_str_add(&s, "relu name=features.%d\n", index + 2);
        index += 3;
    }
    base_str_add(&s, "dense classes name=classifier\n");
    return base_str_take(&s);
}
