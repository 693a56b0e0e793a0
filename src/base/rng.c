/* SPDX-License-Identifier: MIT */
#include "base/rng.h"

void base_rng_block(const struct base_rng *rng, uint32_t block, uint32_t words[4])
{
    uint32_t k0 = rng->key[0], k1 = rng->key[1];
    uint32_t c0 = block, c1 = rng->counter[1], c2 = rng->counter[2], c3 = rng->counter[3];

    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;

        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
}

uint32_t base_rng_u32(const struct base_rng *rng, uint32_t index)
{
    uint32_t words[4];

    base_rng_block(rng, index / 4, words);
    return words[index % 4];
}

void base_rng_shuffle(const struct base_rng *rng, uint32_t *order, uint32_t count)
{
    uint32_t words[4];

    for (uint32_t i = 0; i + 1 < count; i++) {
        uint32_t left = count - i, pick, held;

        if (i % 4 == 0)
            base_rng_block(rng, i / 4, words);
        pick = i + (uint32_t)(((uint64_t)words[i % 4] * left) >> 32);
        held = order[i];
        order[i] = order[pick];
        order[pick] = held;
    }
}
