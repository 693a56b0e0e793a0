/* covers: src/data/idx_parse.c src/data/classes.c */
/* SPDX-License-Identifier: MIT
 *
 * idx files, plain and gzip, and lists of class names. What is accepted is read to its last byte.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/data_private.h"

static void read_idx(const uint8_t *bytes, size_t count)
{
    struct data_idx images, labels;
    uint32_t sum = 0;

    if (data_idx_images(bytes, count, &images) == BASE_OK) {
        size_t size = (size_t)images.count * images.height * images.width;

        for (size_t i = 0; i < size; i++)
            sum += images.values[i];
    }
    if (data_idx_labels(bytes, count, &labels) == BASE_OK) {
        int32_t *numbers = base_calloc(labels.count, sizeof *numbers);

        images.count = labels.count - (labels.count > 7);
        if (data_idx_check(&images, &labels, 10, numbers) == BASE_OK)
            for (uint32_t i = 0; i < labels.count; i++)
                if (numbers[i] < 0 || numbers[i] >= 10)
                    abort();
        base_free(numbers);
    }
    if (sum == UINT32_MAX)
        abort(); /* keeps the reads */
}

static void read_names(const char *text, size_t count)
{
    int lines = data_class_lines(text, count);
    char **names = base_calloc((size_t)lines, sizeof *names);

    for (int classes = lines; classes <= 10; classes += 10) {
        base_ignore(data_class_names(text, count, classes, names));
        if (lines != classes)
            break;
    }
    base_names_free(names, (size_t)lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    uint8_t *idx = NULL;
    size_t size = 0;

    if (data_idx_is_gzip(bytes, count)) {
        if (data_idx_inflate(bytes, count, &idx, &size) == BASE_OK)
            read_idx(idx, size);
        base_free(idx);
    } else {
        read_idx(bytes, count);
        read_names((const char *)bytes, count);
    }
    return 0;
}
