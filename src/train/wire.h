/* SPDX-License-Identifier: MIT
 *
 * What a file in train/wires/ provides: `const struct train_wire train_wire_NAME`, a format in
 * which floats travel between workers. A format may round or leave out; what it loses stays in the
 * sender's *residual* and is sent with the next values (error feedback, Seide et al. 2014), so that
 * over time the receiver gets the whole sum.
 *
 * A zero whose residual is zero arrives as a zero in every format: the padding of weights stays
 * what it is. The bytes depend on the values alone, and every receiver gets the same bits from
 * them. A message has no header with the count or the format: both sides know these. No call
 * allocates. Thread-safe.
 */
#ifndef TRAIN_WIRE_H
#define TRAIN_WIRE_H

#include "base/option.h"
#include "base/status.h"

struct train_wire {
    const char *name, *help;
    bool exact; /* every bit arrives: there is never a residual */

    /* What may follow the name, "topk/share=0.05/bits=2": a table over a struct; NULL: nothing. */
    const struct base_option *options;
    size_t options_size;
    const void *defaults;
    const char *const *examples; /* texts of options that tests run; NULL-ended; NULL: "" alone */

    /* The most bytes that `count` floats can take. */
    size_t (*bound)(const void *options, size_t count);
    /* Sends x + residual; afterwards residual is what the receiver still lacks. Returns the bytes'
     * number. Where a value is not finite the receiver refuses the bytes. */
    size_t (*encode)(const void *options, const float *x, float *residual, size_t count,
                     uint8_t *bytes);
    /* Bytes from outside: a length or a value that encode never makes is BASE_ERR_DATA, and y is
     * then undefined. All of y is finite otherwise. */
    base_status (*decode)(const void *options, const uint8_t *bytes, size_t length, float *y,
                          size_t count);
};

extern const struct train_wire *const train_wire_registry[];
extern const size_t train_wire_count;

/* A format with its options. */
struct train_wiring {
    const struct train_wire *wire;
    void *options; /* base_free */
};

/* "NAME" or "NAME/option=value/…": the text stands inside the options of a strategy, which commas
 * and colons divide. */
base_status train_wire_find(const char *text, struct train_wiring *wiring_p);
void train_wiring_fini(struct train_wiring *wiring); /* accepts zeros */
/* The text of an option, NULL: none: an error if it is wrong; does the format leave residuals? */
base_status train_wire_check(const char *text);
bool train_wire_is_lossy(const char *text);

size_t train_wire_bound(const struct train_wiring *wiring, size_t count);
/* residual: `count` floats, zeros at first; NULL only where the format is exact. */
size_t train_wire_encode(const struct train_wiring *wiring, const float *x, float *residual,
                         size_t count, uint8_t *bytes);
base_status train_wire_decode(const struct train_wiring *wiring, const uint8_t *bytes,
                              size_t length, float *y, size_t count);

#endif
