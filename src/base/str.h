/* SPDX-License-Identifier: MIT
 *
 * A growing string, and the nearest known name for a misspelt one.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* init by = {0}; always terminated once something was added. Release with base_str_fini. */
struct base_str {
    char *text;
    size_t length, capacity;
};

void base_str_add(struct base_str *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void base_str_append(struct base_str *s, const char *bytes, size_t count);
/* UTF-8 text cut to a column of `width` places of a terminal and filled up with blanks, to the left
 * of the text or, with a negative width, to its right. printf's %-16.16s counts bytes. */
void base_str_column(struct base_str *s, const char *text, int width);
void base_str_fini(struct base_str *s);

/* The text, owned by the caller (base_free); the builder is empty again. */
char *base_str_take(struct base_str *s);

/* Three digits and the prefix of the unit that follows: "1.43 G", "95.2 M", "820 ". */
struct base_scaled {
    char text[16];
};
struct base_scaled base_scaled(double value);

/* "s" for every number but one: "1 epoch", "2 epochs". */
const char *base_plural(int64_t count);

/* base_unknown(code, what, name, names, count): base_fail with "unknown WHAT 'NAME'; did you mean
 * 'NEAR'? known: A, B, C". `names` has `count` entries. A macro for the reason of base_fail. */
#define base_unknown(code, ...) base_failed((base_keep_unknown(__VA_ARGS__), (code)))
void base_keep_unknown(const char *what, const char *name, const char *const *names, size_t count);

/* Index of the closest name when it is close enough to be a slip of the finger, else -1. */
int base_nearest(const char *name, const char *const *names, size_t count);

#endif
