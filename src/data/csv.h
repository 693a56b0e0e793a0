/* SPDX-License-Identifier: MIT
 *
 * A reader of CSV from memory: one record at a time. What fields mean is its caller's business.
 */
#ifndef DATA_CSV_H
#define DATA_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/str.h"

enum { DATA_CSV_MAX_FIELD = 65536 };
struct data_csv {
    struct base_cursor at;
    char separator;
    uint64_t next_line; /* from 1 */
    /* The record that was read last: the line it begins on, and its fields, each with a zero at
     * its end. */
    uint64_t line;
    size_t count, capacity;
    size_t *starts;
    struct base_str text;
};
void data_csv_init(struct data_csv *csv, const void *bytes, size_t count);
void data_csv_fini(struct data_csv *csv); /* accepts zeros */
/* *more_p false: there is no further record. A failure is of one record, and its message begins
 * with "line N"; the next call goes on after it. */
base_status data_csv_next(struct data_csv *csv, bool *more_p);
static inline const char *data_csv_field(const struct data_csv *csv, size_t index)
{
    return csv->text.text + csv->starts[index];
}

#endif
