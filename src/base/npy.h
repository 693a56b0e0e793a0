/* SPDX-License-Identifier: MIT
 *
 * NumPy's file format 1.0 (.npy), written in pieces and atomically: an array of known shape, whose
 * values follow each other, the last index changing fastest. One thread's.
 */
#ifndef BASE_NPY_H
#define BASE_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/file.h"

enum { BASE_NPY_DIMENSIONS = 4 };

struct base_npy {
    struct base_replacement file;
    size_t left; /* bytes to come */
};

/* "<f4" is float, "<u4" uint32_t. End it always: without a commit nothing is left. */
base_status base_npy_begin(const char *path, const char *type, const size_t *shape, int dimensions,
                           struct base_npy *npy);
base_status base_npy_write(struct base_npy *npy, const void *values, size_t bytes);
/* An error unless all values came. */
base_status base_npy_commit(struct base_npy *npy);
void base_npy_end(struct base_npy *npy); /* accepts zeros */

#endif
