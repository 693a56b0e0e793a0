/* SPDX-License-Identifier: MIT
 *
 * Getters over the words of one line of a model file. Every message names the word and the
 * layer's usage; nn/graph.c puts the file and the line number before it. Numbers are plain
 * decimals: no signs on whole numbers, no hexadecimal, no infinities.
 */
#include "nn/line.h"

#include <stdlib.h>
#include <string.h>

static base_status wrong(const struct nn_line *line, const char *word, const char *what)
{
    return base_fail(BASE_ERR_MODEL, "%s: '%.40s' is not %s (usage: %s)", line->words[0], word,
                     what, line->usage);
}

/* Takes the next plain word (no key=value), or NULL. */
static char *take_word(struct nn_line *line)
{
    for (int i = 1; i < line->count; i++) {
        char *word = line->words[i];

        if (word != NULL && strchr(word, '=') == NULL) {
            line->words[i] = NULL;
            return word;
        }
    }
    return NULL;
}

/* Takes the value of key=value, or NULL. */
static char *take_option(struct nn_line *line, const char *key)
{
    size_t length = strlen(key);

    for (int i = 1; i < line->count; i++) {
        char *word = line->words[i];

        if (word != NULL && strncmp(word, key, length) == 0 && word[length] == '=') {
            line->words[i] = NULL;
            return word + length + 1;
        }
    }
    return NULL;
}

/* Digits up to `end` (NULL: the whole text) as a number min … max. */
static bool whole(const char *text, const char *end, int min, int max, int *value_p)
{
    long value = 0;

    if (end == NULL)
        end = text + strlen(text);
    if (end == text)
        return false;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9')
            return false;
        value = value * 10 + (*text - '0');
        if (value > max)
            return false;
    }
    *value_p = (int)value;
    return value >= min;
}

static base_status parse_int(const struct nn_line *line, const char *what, const char *word,
                             int min, int max, int *value_p)
{
    if (strcmp(word, "classes") == 0) {
        if (line->classes == 0)
            return base_fail(BASE_ERR_MODEL,
                             "%s: the number of classes is not known; add a line `classes N` at "
                             "the top of the model",
                             line->words[0]);
        if (line->classes >= min && line->classes <= max) {
            *value_p = line->classes;
            return BASE_OK;
        }
    }
    if (whole(word, NULL, min, max, value_p))
        return BASE_OK;
    return base_fail(BASE_ERR_MODEL,
                     "%s: %s '%.40s' is not a whole number from %d to %d "
                     "(usage: %s)",
                     line->words[0], what, word, min, max, line->usage);
}

static base_status parse_pair(const struct nn_line *line, const char *what, const char *word,
                              int min, int max, int pair_p[2])
{
    const char *cross = strchr(word, 'x');

    if (cross == NULL && whole(word, NULL, min, max, &pair_p[0])) {
        pair_p[1] = pair_p[0];
        return BASE_OK;
    }
    if (cross != NULL && whole(word, cross, min, max, &pair_p[0]) &&
        whole(cross + 1, NULL, min, max, &pair_p[1]))
        return BASE_OK;
    return base_fail(BASE_ERR_MODEL,
                     "%s: %s '%.40s' is neither a whole number from %d to %d nor two like 3x3 "
                     "(usage: %s)",
                     line->words[0], what, word, min, max, line->usage);
}

static base_status parse_real(const struct nn_line *line, const char *what, const char *word,
                              double min, double max, double *value_p)
{
    char *end;
    double value;

    if (word[0] == '\0' || word[strspn(word, "0123456789.e-+")] != '\0')
        return wrong(line, word, "a number");
    value = strtod(word, &end);
    if (*end != '\0')
        return wrong(line, word, "a number");
    if (!(value >= min && value <= max))
        return base_fail(BASE_ERR_MODEL, "%s: %s '%.40s' is not from %g to %g (usage: %s)",
                         line->words[0], what, word, min, max, line->usage);
    *value_p = value;
    return BASE_OK;
}

static base_status missing(const struct nn_line *line, const char *what)
{
    return base_fail(BASE_ERR_MODEL, "%s: %s is missing (usage: %s)", line->words[0], what,
                     line->usage);
}

base_status nn_line_int(struct nn_line *line, const char *what, int min, int max, int *value_p)
{
    const char *word = take_word(line);

    return word == NULL ? missing(line, what) : parse_int(line, what, word, min, max, value_p);
}

base_status nn_line_real(struct nn_line *line, const char *what, double min, double max,
                         double *value_p)
{
    const char *word = take_word(line);

    return word == NULL ? missing(line, what) : parse_real(line, what, word, min, max, value_p);
}

base_status nn_line_pair(struct nn_line *line, const char *what, int min, int max, int pair_p[2])
{
    const char *word = take_word(line);

    return word == NULL ? missing(line, what) : parse_pair(line, what, word, min, max, pair_p);
}

base_status nn_line_shape(struct nn_line *line, int max, int dims_p[3])
{
    const char *word = take_word(line), *at = word;
    int count = 0;

    if (word == NULL)
        return missing(line, "CxHxW");
    dims_p[1] = dims_p[2] = 1;
    while (count < 3) {
        const char *cross = strchr(at, 'x');

        if (!whole(at, cross, 1, max, &dims_p[count++]))
            break;
        if (cross == NULL)
            return count == 2 ? wrong(line, word, "C or CxHxW") : BASE_OK;
        at = cross + 1;
    }
    return wrong(line, word, "a shape like 3x32x32");
}

base_status nn_line_word(struct nn_line *line, const char *what, const char **word_p)
{
    *word_p = take_word(line);
    return *word_p == NULL ? missing(line, what) : BASE_OK;
}

base_status nn_line_opt_int(struct nn_line *line, const char *key, int min, int max, int *value_p)
{
    const char *word = take_option(line, key);

    return word == NULL ? BASE_OK : parse_int(line, key, word, min, max, value_p);
}

base_status nn_line_opt_pair(struct nn_line *line, const char *key, int min, int max, int pair_p[2])
{
    const char *word = take_option(line, key);

    return word == NULL ? BASE_OK : parse_pair(line, key, word, min, max, pair_p);
}

base_status nn_line_opt_real(struct nn_line *line, const char *key, double min, double max,
                             double *value_p)
{
    const char *word = take_option(line, key);

    return word == NULL ? BASE_OK : parse_real(line, key, word, min, max, value_p);
}

base_status nn_line_opt_flag(struct nn_line *line, const char *key, bool *value_p)
{
    const char *word = take_option(line, key);

    if (word == NULL)
        return BASE_OK;
    if (strcmp(word, "on") != 0 && strcmp(word, "off") != 0)
        return wrong(line, word, "on or off");
    *value_p = word[1] == 'n';
    return BASE_OK;
}

base_status nn_line_opt_word(struct nn_line *line, const char *key, const char **word_p)
{
    const char *word = take_option(line, key);

    if (word != NULL)
        *word_p = word;
    return BASE_OK;
}

base_status nn_line_end(struct nn_line *line)
{
    for (int i = 1; i < line->count; i++)
        if (line->words[i] != NULL)
            return base_fail(BASE_ERR_MODEL, "%s: what is '%.40s'? (usage: %s)", line->words[0],
                             line->words[i], line->usage);
    return BASE_OK;
}
