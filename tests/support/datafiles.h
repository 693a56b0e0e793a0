/* SPDX-License-Identifier: MIT
 *
 * Small data sets written into a scratch folder, for tests that read and break them.
 */
#ifndef SUPPORT_DATAFILES_H
#define SUPPORT_DATAFILES_H

#include <stddef.h>
#include <stdint.h>

/* A new folder below TMPDIR; support_scratch_free removes it with all it holds. */
char *support_scratch(void);
void support_scratch_free(char *folder);

/* Writes FOLDER/NAME, making the folders between. */
void support_write(const char *folder, const char *name, const void *bytes, size_t count);
void support_write_gzip(const char *folder, const char *name, const void *bytes, size_t count);

/* idx files: image i is filled with pixels (i * 7 + position) & 255, label i is i % classes. */
size_t support_idx_images(uint32_t count, uint32_t height, uint32_t width, uint8_t **bytes_p);
size_t support_idx_labels(uint32_t count, uint32_t classes, uint8_t **bytes_p);
void support_idx_set(const char *folder, uint32_t train, uint32_t test); /* 5x4 pixels */

/* gzip of `bytes`; free with base_free. */
size_t support_gzip(const void *bytes, size_t count, uint8_t **packed_p);

#endif
