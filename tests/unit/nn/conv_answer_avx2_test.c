/* SPDX-License-Identifier: MIT
 *
 * The tests of conv_answer_test.c with the kernels of the AVX2 level, where the CPU has it.
 */
#define LEVEL "avx2"
#include "conv_answer_test.c"
