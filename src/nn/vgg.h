/* SPDX-License-Identifier: MIT
 *
 * The texts of the VGG family (Simonyan and Zisserman 2014) for images of 32x32.
 */
#ifndef NN_VGG_H
#define NN_VGG_H

/* `widths`: outputs of each convolution, 0 for a pool, -1 at the end. base_free. */
char *nn_vgg_text(const int *widths);

#endif
