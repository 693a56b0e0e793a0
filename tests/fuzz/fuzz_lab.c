/* covers: src/lab/lab.c src/lab/grid.c */
/* SPDX-License-Identifier: MIT
 *
 * A lab's file. What is accepted has at least one run and no more than are allowed, names that
 * differ, and words for every option.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lab.h"

static void check(const struct lab *lab)
{
    if (lab->point_count < 1 || lab->seed_count < 1 || lab->column_count < 1 ||
        lab->point_count * lab->seed_count > LAB_MAX_RUNS)
        abort();
    for (size_t i = 0; i < lab->point_count; i++) {
        char **words = lab_words(&lab->points[i], lab->seeds[0]);
        size_t count = 0;

        while (words[count] != NULL)
            count++;
        if (count != json_object_size(lab->points[i].options) + 1 ||
            lab->points[i].name[0] == '\0' || lab->points[i].group[0] == '\0' ||
            (i > 0 && strcmp(lab->points[i].name, lab->points[i - 1].name) == 0))
            abort();
        lab_words_free(words);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    json_t *file = NULL;

    if (base_json_parse((const char *)bytes, count, &file) != BASE_OK)
        return 0;
    for (int quick = 0; quick < 2; quick++) {
        struct lab_changes changes = {.quick = quick != 0,
                                      .sets = {.at = {"lr=0.5", "data=x"}, .count = 2 * quick}};
        struct lab lab;

        if (lab_open("fuzz", file, &changes, &lab) == BASE_OK) {
            check(&lab);
            base_ignore(lab_select(&lab, &(struct base_texts){.at = {"a"}, .count = 1}));
        }
        lab_close(&lab);
    }
    json_decref(file);
    return 0;
}
