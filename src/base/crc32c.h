/* SPDX-License-Identifier: MIT
 *
 * CRC32C: tells bytes that were damaged by accident.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues a CRC32C (start with 0). */
uint32_t base_crc32c(uint32_t crc, const void *bytes, size_t count);
uint32_t base_crc32c_portable(uint32_t crc, const void *bytes, size_t count); /* for its test */

#endif
