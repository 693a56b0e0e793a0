/* SPDX-License-Identifier: MIT
 *
 * Counter-based randomness: Philox4x32-10 (Salmon et al., SC'11). Every random number of a run
 * is a pure function of (seed, stream, layer, epoch, sample, index): it depends neither on the
 * number of workers nor on how the work is cut, and nothing carries a generator's state.
 * tools/philox.py computes the same numbers.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

enum base_stream {
    BASE_STREAM_INIT = 1, /* layer = index of the parameter tensor, index = canonical element */
    BASE_STREAM_SHUFFLE,  /* epoch, index = position */
    BASE_STREAM_DROPOUT,  /* layer, epoch, sample, index = element */
    BASE_STREAM_AUGMENT,  /* epoch, sample */
    BASE_STREAM_SYNTH,    /* layer = what, sample, index */
    BASE_STREAM_SPLIT,    /* validation split: index = position */
    BASE_STREAM_TEST,     /* data of tests */
    BASE_STREAM_SAMPLE, /* draws of Gibbs sampling: layer = of what, epoch = sweep, sample = row */
};

struct base_rng {
    uint32_t key[2];     /* seed, low word first */
    uint32_t counter[4]; /* block index, sample, epoch, stream << 24 | layer */
};

static inline struct base_rng base_rng_of(uint64_t seed, enum base_stream stream, uint32_t layer,
                                          uint32_t epoch, uint32_t sample)
{
    return (struct base_rng){{(uint32_t)seed, (uint32_t)(seed >> 32)},
                             {0, sample, epoch, (uint32_t)stream << 24 | (layer & 0xffffff)}};
}

/* The four words of block `block`: elements 4*block … 4*block+3. */
void base_rng_block(const struct base_rng *rng, uint32_t block, uint32_t words[4]);

uint32_t base_rng_u32(const struct base_rng *rng, uint32_t index); /* element `index` */

/* [0,1) with 24 bits: (word >> 8) * 2^-24. */
static inline float base_rng_unit(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

/* 64 well-mixed bits of 64: the finaliser of SplitMix64 (Steele et al., OOPSLA'14). For decisions
 * of which there are hundreds of millions, and for hash tables: ten times as fast as a block. Mix a
 * key in with a sum or an exclusive or, and mix again. */
static inline uint64_t base_rng_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/* Fisher–Yates over `count` values already in `order`. */
void base_rng_shuffle(const struct base_rng *rng, uint32_t *order, uint32_t count);

#endif
