/* covers: src/data/cifar_parse.c */
/* SPDX-License-Identifier: MIT
 *
 * CIFAR-10's records. Whatever is accepted has its labels in range.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/data_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    /* Files of whole records are rare among mutations: the first byte asks for one to be made. */
    bool whole = count > 0 && bytes[0] % 2 != 0;
    size_t records = count / DATA_CIFAR_RECORD + 1,
           size = whole ? records * DATA_CIFAR_RECORD : count;
    uint8_t *file = base_calloc(size, 1);
    int32_t *labels = base_calloc(records, sizeof *labels);
    uint32_t found = 0;

    memcpy(file, bytes, count < size ? count : size);
    if (data_cifar_records(file, size, labels, &found) == BASE_OK) {
        if (found != size / DATA_CIFAR_RECORD)
            abort();
        for (uint32_t i = 0; i < found; i++)
            if (labels[i] != file[(size_t)i * DATA_CIFAR_RECORD] || labels[i] > 9)
                abort();
    }
    base_free(labels);
    base_free(file);
    return 0;
}
