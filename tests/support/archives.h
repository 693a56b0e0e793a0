/* SPDX-License-Identifier: MIT
 *
 * Small archives made in memory, good and bad: what a test feeds to the readers of tar and zip.
 */
#ifndef TEST_ARCHIVES_H
#define TEST_ARCHIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* Appends one member (ustar): `type` is '0' for a file, '5' for a folder, 'x', 'L', … */
void test_tar_add(struct base_str *tar, const char *name, char type, const char *bytes,
                  size_t count);
void test_tar_end(struct base_str *tar); /* two blocks of zeros */

/* gzip of `count` bytes, appended to `out`. */
void test_gzip(const char *bytes, size_t count, struct base_str *out);

/* init by = {0}; end puts the directory after the members and leaves all in `bytes`. */
struct test_zip {
    struct base_str bytes, directory;
    uint16_t entries;
};
void test_zip_add(struct test_zip *zip, const char *name, const char *bytes, size_t count,
                  bool deflate);
void test_zip_end(struct test_zip *zip, const char *comment);
void test_zip_fini(struct test_zip *zip);

#endif
