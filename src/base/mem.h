/* SPDX-License-Identifier: MIT
 *
 * Memory. Small things abort when there is none; tensors and whatever is sized by input
 * return a status. Tensors are aligned to a cache line and start as zeros.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { BASE_ALIGN = 64 };

void *base_calloc(size_t count, size_t size);
void *base_realloc(void *old, size_t count, size_t size);
char *base_strdup(const char *text);
char *base_strndup(const char *text, size_t length);
char *base_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* `count` zeroed elements of `size` bytes; `what` names them in the error. Free with base_free. */
base_status base_tensor(size_t count, size_t size, const char *what, void *memory_pp);
/* The same with any contents, for what is written before it is read. The threads that write it are
 * the first to touch its pages, which the leader would do alone for zeros. */
base_status base_tensor_unset(size_t count, size_t size, const char *what, void *memory_pp);
void base_free(void *memory); /* of any function here; accepts NULL */

/* a * b and a + b that fail instead of wrapping around. */
base_status base_mul(size_t a, size_t b, size_t *product_p);
base_status base_add(size_t a, size_t b, size_t *sum_p);

uint64_t base_peak_memory(void); /* bytes, of this process (VmHWM) */
/* Bytes that this process has now: its own, and pages of files and of shared memory. */
void base_resident_memory(uint64_t *own_p, uint64_t *others_p);
/* Bytes that this process can have at most: the machine's, or fewer if a control group says so. */
uint64_t base_memory_limit(void);

#endif
