/* covers: src/train/strategies/downpour/call.c */
/* SPDX-License-Identifier: MIT
 *
 * What a worker says to the manager of `downpour`, and what it hears. What is accepted must survive
 * being sent and read again.
 */
#include <stdlib.h>
#include <string.h>

#include "train/strategies/downpour/call.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct downpour_call call, call_again;
    struct train_answer answer, answer_again;
    uint8_t said[DOWNPOUR_CALL_BYTES], again[DOWNPOUR_CALL_BYTES];

    if (downpour_call_decode(bytes, count, &call) == BASE_OK) {
        downpour_call_encode(&call, said);
        if (memcmp(said, bytes, sizeof said) != 0 ||
            downpour_call_decode(said, sizeof said, &call_again) != BASE_OK ||
            !downpour_round_same(&call.round, &call_again.round))
            abort();
    }
    if (train_answer_decode(bytes, count, &answer) == BASE_OK) {
        train_answer_encode(&answer, again);
        if (train_answer_decode(again, TRAIN_ANSWER_BYTES, &answer_again) != BASE_OK ||
            answer_again.kind != answer.kind || answer_again.block != answer.block)
            abort();
    }
    return 0;
}
