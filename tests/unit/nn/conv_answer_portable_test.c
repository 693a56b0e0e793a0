/* SPDX-License-Identifier: MIT
 *
 * The tests of conv_answer_test.c with the kernels of the portable level.
 */
#define LEVEL "portable"
#include "conv_answer_test.c"
