/* SPDX-License-Identifier: MIT
 *
 * The bytes of CIFAR-10's binary files: records of a label and 32x32 pixels, red, green, blue.
 * Knows memory only; files are formats/cifar.c's.
 */
#include "base/cursor.h"
#include "data/data_private.h"

base_status data_cifar_records(const void *bytes, size_t count, int32_t *labels,
                               uint32_t *records_p)
{
    base_status st = BASE_OK;
    struct base_cursor c = base_cursor_of(bytes, count);
    uint32_t record = 0;

    *records_p = 0;
    if (count == 0 || count % DATA_CIFAR_RECORD != 0 || count / DATA_CIFAR_RECORD > UINT32_MAX)
        TRY(base_fail(BASE_ERR_DATA, "%zu bytes are not a whole number of records of %d bytes",
                      count, DATA_CIFAR_RECORD));
    for (; base_cursor_left(&c) > 0; record++) {
        const uint8_t *pixels;
        uint8_t label = 0;

        TRY(base_cursor_u8(&c, &label));
        TRY(base_cursor_skip(&c, DATA_CIFAR_RECORD - 1, &pixels));
        if (label >= DATA_CIFAR_CLASSES)
            TRY(base_fail(BASE_ERR_DATA, "label %u of record %u is out of range: 0 to %d", label,
                          record, DATA_CIFAR_CLASSES - 1));
        labels[record] = label;
    }
    *records_p = record;
out:
    return st;
}
