/* SPDX-License-Identifier: MIT
 *
 * Which ids there are. Numbers are bits of a set that all threads share, in pages that are made
 * when the first number falls into them: the rank of a number is the count of bits before it.
 * Texts are in a hash table of each thread, which are sorted together at the end. Either way ranks
 * follow from the ids alone.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "recsys/recsys_private.h"

enum {
    PAGE_BITS = 1 << 16,
    PAGE_WORDS = PAGE_BITS / 64,
    PAGES = (RECSYS_MOST_NUMBER + 1) / PAGE_BITS
};

struct page {
    _Atomic uint64_t word[PAGE_WORDS];
    uint32_t before[PAGE_WORDS]; /* numbers in front of each word */
};

/* One thread's texts, each with a zero at its end, in the order they came. */
struct dictionary {
    struct base_str text;
    size_t *start;
    uint32_t count, capacity;
    uint32_t *slot, slots; /* by hash: 1 + index, 0: free */
    uint32_t *rank;        /* (count) */
};

struct recsys_census {
    bool texts;
    int threads;
    _Atomic(struct page *) page[PAGES];
    _Atomic uint32_t pages;        /* the ones from there on are not there */
    struct dictionary *dictionary; /* (threads) */
    uint32_t count;
    uint32_t *number;     /* (count) */
    uint64_t *text_start; /* (count+1) */
    struct base_str text;
};

struct recsys_census *recsys_census_new(bool texts, int threads)
{
    struct recsys_census *c = base_calloc(1, sizeof *c);

    c->texts = texts;
    c->threads = threads;
    c->dictionary = base_calloc((size_t)threads, sizeof *c->dictionary);
    return c;
}

void recsys_census_free(struct recsys_census *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->pages; i++)
        base_free(c->page[i]);
    for (int t = 0; t < c->threads; t++) {
        base_str_fini(&c->dictionary[t].text);
        base_free(c->dictionary[t].start);
        base_free(c->dictionary[t].slot);
        base_free(c->dictionary[t].rank);
    }
    base_free(c->dictionary);
    base_free(c->number);
    base_free(c->text_start);
    base_str_fini(&c->text);
    base_free(c);
}

/* ---- numbers ---- */

static struct page *make_page(struct recsys_census *c, uint32_t index)
{
    struct page *made = base_calloc(1, sizeof *made), *there = NULL;
    uint32_t pages = atomic_load(&c->pages);

    while (pages <= index && !atomic_compare_exchange_weak(&c->pages, &pages, index + 1))
        ;
    if (atomic_compare_exchange_strong(&c->page[index], &there, made))
        return made;
    base_free(made); /* another thread was first */
    return there;
}

void recsys_census_number(struct recsys_census *c, uint32_t number)
{
    struct page *page = atomic_load_explicit(&c->page[number / PAGE_BITS], memory_order_acquire);
    uint64_t bit = (uint64_t)1 << (number % 64);
    _Atomic uint64_t *word;

    if (page == NULL)
        page = make_page(c, number / PAGE_BITS);
    word = &page->word[number % PAGE_BITS / 64];
    if ((atomic_load_explicit(word, memory_order_relaxed) & bit) == 0)
        atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
}

static void rank_numbers(struct recsys_census *c)
{
    uint32_t capacity = 0;

    for (uint32_t p = 0; p < c->pages; p++)
        for (uint32_t w = 0; c->page[p] != NULL && w < PAGE_WORDS; w++) {
            c->page[p]->before[w] = capacity;
            capacity += (uint32_t)__builtin_popcountll(c->page[p]->word[w]);
        }
    c->number = base_calloc((size_t)capacity + 1, sizeof *c->number);
    for (uint32_t p = 0; p < c->pages; p++)
        for (uint32_t w = 0; c->page[p] != NULL && w < PAGE_WORDS; w++)
            for (uint64_t word = c->page[p]->word[w]; word != 0; word &= word - 1)
                c->number[c->count++] = p * PAGE_BITS + w * 64 + (uint32_t)__builtin_ctzll(word);
}

static uint32_t rank_of_number(const struct recsys_census *c, uint32_t number)
{
    const struct page *page =
        atomic_load_explicit(&c->page[number / PAGE_BITS], memory_order_relaxed);
    uint32_t w = number % PAGE_BITS / 64;
    uint64_t word = atomic_load_explicit(&page->word[w], memory_order_relaxed);

    return page->before[w] +
           (uint32_t)__builtin_popcountll(word & (((uint64_t)1 << (number % 64)) - 1));
}

/* ---- texts ---- */

static uint32_t hash(const char *text, size_t length)
{
    uint64_t h = length;

    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001b3;
    return (uint32_t)base_rng_mix(h);
}

static void put(struct dictionary *d, uint32_t h, uint32_t index)
{
    uint32_t at = h & (d->slots - 1);

    while (d->slot[at] != 0)
        at = (at + 1) & (d->slots - 1);
    d->slot[at] = index + 1;
}

static void grow(struct dictionary *d)
{
    base_free(d->slot);
    d->slots = d->slots > 0 ? 2 * d->slots : 64;
    d->slot = base_calloc(d->slots, sizeof *d->slot);
    d->capacity = d->slots / 2;
    d->start = base_realloc(d->start, d->capacity, sizeof *d->start);
    for (uint32_t i = 0; i < d->count; i++)
        put(d, hash(d->text.text + d->start[i], strlen(d->text.text + d->start[i])), i);
}

uint32_t recsys_census_text(struct recsys_census *c, int thread, struct recsys_field id)
{
    struct dictionary *d = &c->dictionary[thread];
    uint32_t h = hash(id.at, id.length), at;

    if (d->count == d->capacity)
        grow(d);
    for (at = h & (d->slots - 1); d->slot[at] != 0; at = (at + 1) & (d->slots - 1)) {
        const char *there = d->text.text + d->start[d->slot[at] - 1];

        if (strncmp(there, id.at, id.length) == 0 && there[id.length] == '\0')
            return d->slot[at] - 1;
    }
    d->slot[at] = ++d->count;
    d->start[d->count - 1] = d->text.length;
    base_str_append(&d->text, id.at, id.length);
    base_str_append(&d->text, "", 1);
    return d->count - 1;
}

struct entry {
    const char *text;
    uint32_t *rank;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->text, ((const struct entry *)b)->text);
}

static void rank_texts(struct recsys_census *c)
{
    size_t count = 0;
    struct entry *all;

    for (int t = 0; t < c->threads; t++)
        count += c->dictionary[t].count;
    all = base_calloc(count + 1, sizeof *all);
    count = 0;
    for (int t = 0; t < c->threads; t++) {
        struct dictionary *d = &c->dictionary[t];

        d->rank = base_calloc((size_t)d->count + 1, sizeof *d->rank);
        for (uint32_t i = 0; i < d->count; i++)
            all[count++] = (struct entry){d->text.text + d->start[i], &d->rank[i]};
    }
    qsort(all, count, sizeof *all, by_text);
    c->text_start = base_calloc(count + 1, sizeof *c->text_start);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(all[i].text, all[i - 1].text) != 0) {
            c->text_start[c->count++] = c->text.length;
            base_str_append(&c->text, all[i].text, strlen(all[i].text) + 1);
        }
        *all[i].rank = c->count - 1;
    }
    c->text_start[c->count] = c->text.length;
    base_free(all);
}

/* ---- both ---- */

void recsys_census_close(struct recsys_census *c)
{
    if (c->texts)
        rank_texts(c);
    else
        rank_numbers(c);
}

uint32_t recsys_census_rank(const struct recsys_census *c, int thread, uint32_t staged)
{
    return c->texts ? c->dictionary[thread].rank[staged] : rank_of_number(c, staged);
}

struct recsys_ids recsys_census_ids(const struct recsys_census *c)
{
    return (struct recsys_ids){
        .count = c->count, .number = c->number, .text_start = c->text_start, .text = c->text.text};
}
