/* covers: src/train/wires/topk.c src/train/wires/bf16.c src/train/wires/sparse.c
 * src/train/wire_block.c */
/* SPDX-License-Identifier: MIT
 *
 * Values that another worker sends. The first byte chooses a format, the second how many values are
 * expected, in units of 5. What is accepted is finite; and the same bytes are taken for values to
 * send, which must arrive again.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "train/wire.h"

static const char *const texts[] = {
    "fp32",        "bf16",  "int8", "int4", "topk/share=0.1/bits=4", "topk/share=1/bits=8",
    "topk/bits=2", "sparse"};

enum { HEAD = 2, UNIT = 5, TEXTS = sizeof texts / sizeof texts[0] };

static void check_finite(const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            abort();
}

/* All bytes are floats. Where none is near the largest the receiver accepts what is sent, and gets
 * it bit for bit where the format is exact. */
static void send_and_receive(const struct train_wiring *wiring, const uint8_t *bytes, size_t count)
{
    float *x = base_calloc(count, sizeof *x), *y = base_calloc(count, sizeof *y);
    float *residual = base_calloc(count, sizeof *residual);
    uint8_t *sent = base_calloc(train_wire_bound(wiring, count), 1);
    bool fair = true;
    size_t length;

    memcpy(x, bytes, count * sizeof *x);
    for (size_t i = 0; i < count; i++)
        fair &= fabsf(x[i]) < 1e38f; /* false for NaN */
    length = train_wire_encode(wiring, x, residual, count, sent);
    if (length > train_wire_bound(wiring, count))
        abort();
    if ((train_wire_decode(wiring, sent, length, y, count) == BASE_OK) < fair)
        abort();
    if (fair && wiring->wire->exact && memcmp(x, y, count * sizeof *x) != 0)
        abort();
    base_free(x);
    base_free(y);
    base_free(residual);
    base_free(sent);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct train_wiring wiring;
    size_t count;
    float *y;

    if (length < HEAD || train_wire_find(texts[bytes[0] % TEXTS], &wiring) != BASE_OK)
        return 0;
    count = (size_t)bytes[1] * UNIT;
    y = base_calloc(count, sizeof *y);
    if (train_wire_decode(&wiring, bytes + HEAD, length - HEAD, y, count) == BASE_OK)
        check_finite(y, count);
    send_and_receive(&wiring, bytes + HEAD, (length - HEAD) / sizeof *y);
    base_free(y);
    train_wiring_fini(&wiring);
    return 0;
}
