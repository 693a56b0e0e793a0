/* SPDX-License-Identifier: MIT
 *
 * safetensors files (u64 header length, JSON header, raw little-endian tensors), read through a
 * map and written as a stream at offsets known before the first byte of data. Only F32, F16, BF16,
 * I64, U32 and U8 are read; anything else is an error that names the tensor. Never pickle.
 */
#ifndef STORE_SAFETENSORS_H
#define STORE_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum store_type { STORE_F32, STORE_I64, STORE_U32, STORE_U8, STORE_F16, STORE_BF16 };
enum { STORE_MAX_RANK = 8 };

struct store_tensor {
    const char *name;
    enum store_type type;
    int rank;
    uint64_t shape[STORE_MAX_RANK];
    const void *data; /* reader: into the map, maybe unaligned; writer: ignored */
    size_t bytes;     /* reader: set; writer: computed from type and shape */
};

size_t store_type_size(enum store_type type);

struct store_file;

base_status store_open(const char *path, struct store_file **file_p);
/* The same from memory that outlives the result (fuzzing, tests). */
base_status store_parse(const void *bytes, size_t count, struct store_file **file_p);
void store_close(struct store_file *file); /* accepts NULL */

/* Tensors in the order of their bytes in the file. */
size_t store_count(const struct store_file *file);
const struct store_tensor *store_at(const struct store_file *file, size_t index);
const struct store_tensor *store_find(const struct store_file *file,
                                      const char *name); /* or NULL */

/* True for types whose numbers are floats: F32, F16, BF16. */
bool store_is_float(enum store_type type);
/* Converts the numbers of such a tensor, each exactly, into `floats`, which has room for all. */
void store_read_floats(const struct store_tensor *tensor, float *floats);

struct store_writer;

/* Writes the header for `count` tensors, whose bytes follow in this order. The header is padded so
 * that the data begins at a multiple of 64; between tensors there is no gap (readers of the format
 * reject holes), so a tensor is aligned as far as the sizes of those before it allow. */
base_status store_create(const char *path, const struct store_tensor *tensors, size_t count,
                         struct store_writer **writer_p);
/* Writes the next bytes of the tensors, in order, any number at a time. */
base_status store_write(struct store_writer *writer, const void *bytes, size_t count);
/* Fails unless exactly all bytes were written; fsyncs. Frees the writer in any case. */
base_status store_finish(struct store_writer *writer);
void store_abandon(struct store_writer *writer); /* accepts NULL; removes the file */

#endif
