/* SPDX-License-Identifier: MIT
 *
 * One line of a model file: a layer's name, words and key=value options. Each getter consumes
 * what it reads; nn_line_end reports what was not read, with the layer's usage.
 */
#ifndef NN_LINE_H
#define NN_LINE_H

#include <stddef.h>

#include "base/status.h"

struct nn_layer;

enum { NN_LINE_WORDS = 16 };

struct nn_line {
    int number;                 /* from 1 */
    int classes;                /* what the word `classes` stands for; 0: unknown */
    char *words[NN_LINE_WORDS]; /* words[0] is the layer; a consumed word is NULL */
    int count;
    const char *usage;
};

/* Next plain word: a whole number min … max, or `classes`. */
base_status nn_line_int(struct nn_line *line, const char *what, int min, int max, int *value_p);
/* Next plain word: a number min … max. */
base_status nn_line_real(struct nn_line *line, const char *what, double min, double max,
                         double *value_p);
/* Next plain word: "3x3" or "3" (both the same). */
base_status nn_line_pair(struct nn_line *line, const char *what, int min, int max, int pair_p[2]);
/* Next plain word: "3x32x32", or "784" for 784x1x1. */
base_status nn_line_shape(struct nn_line *line, int max, int dims_p[3]);
base_status nn_line_word(struct nn_line *line, const char *what, const char **word_p);
/* Options with a default: the out-argument is left alone when absent. */
base_status nn_line_opt_int(struct nn_line *line, const char *key, int min, int max, int *value_p);
base_status nn_line_opt_pair(struct nn_line *line, const char *key, int min, int max,
                             int pair_p[2]);
base_status nn_line_opt_real(struct nn_line *line, const char *key, double min, double max,
                             double *value_p);
base_status nn_line_opt_flag(struct nn_line *line, const char *key, bool *value_p); /* on|off */
base_status nn_line_opt_word(struct nn_line *line, const char *key, const char **word_p);
base_status nn_line_end(struct nn_line *line);

#endif
