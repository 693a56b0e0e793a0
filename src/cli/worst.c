/* SPDX-License-Identifier: MIT
 *
 * The worst answers: cli/answers.h. A list of twice as many as are wanted is sorted and cut
 * whenever it is full, so that an answer costs the logarithm of their number at most.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/answers.h"

struct cli_worst_entry {
    struct model_answer answer; /* owns what it points to */
    uint64_t order;
};

void cli_worst_init(struct cli_worst *w, size_t most)
{
    *w = (struct cli_worst){.most = most, .at = base_calloc(2 * most, sizeof *w->at)};
}

static void free_from(struct cli_worst *w, size_t first)
{
    for (size_t i = first; i < w->count; i++) {
        base_free((void *)(uintptr_t)w->at[i].answer.name);
        base_free((void *)(uintptr_t)w->at[i].answer.classes);
        base_free((void *)(uintptr_t)w->at[i].answer.scores);
    }
    if (w->count > first)
        w->count = first;
}

void cli_worst_fini(struct cli_worst *w)
{
    free_from(w, 0);
    base_free(w->at);
    *w = (struct cli_worst){0};
}

static int by_loss(const void *a, const void *b)
{
    const struct cli_worst_entry *x = a, *y = b;

    if (x->answer.loss != y->answer.loss)
        return x->answer.loss > y->answer.loss ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static void sort_and_cut(struct cli_worst *w)
{
    if (w->count > 0)
        qsort(w->at, w->count, sizeof *w->at, by_loss);
    free_from(w, w->most);
}

static void *copy(const void *from, size_t count, size_t size)
{
    return memcpy(base_calloc(count, size), from, count * size);
}

void cli_worst_add(struct cli_worst *w, const struct model_answer *answer)
{
    struct cli_worst_entry *entry = &w->at[w->count];
    size_t top = (size_t)answer->top;

    if (answer->bad != NULL || isnan(answer->loss))
        return;
    entry->answer = *answer;
    entry->answer.name = base_strdup(answer->name);
    entry->answer.classes = copy(answer->classes, top, sizeof *answer->classes);
    entry->answer.scores = copy(answer->scores, top, sizeof *answer->scores);
    entry->order = w->seen++;
    if (++w->count == 2 * w->most)
        sort_and_cut(w);
}

void cli_worst_write(struct cli_worst *w, struct cli_answers *to)
{
    sort_and_cut(w);
    for (size_t i = 0; i < w->count; i++)
        cli_answers_write(to, &w->at[i].answer);
}
