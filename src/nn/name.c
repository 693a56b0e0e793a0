/* SPDX-License-Identifier: MIT
 *
 * Names in model files: nn/name.h.
 */
#include "nn/name.h"

#include <string.h>

#include "nn/line.h"

base_status nn_name_check(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-.";
    size_t length = strlen(name);

    if (length == 0 || length >= NN_MAX_NAME || strspn(name, allowed) != length)
        return base_fail(BASE_ERR_MODEL,
                         "'%.40s' is no name; use 1 to %d letters, digits, '_', '-' or '.'", name,
                         NN_MAX_NAME - 1);
    return BASE_OK;
}

base_status nn_name_parse(struct nn_line *line, void *config)
{
    base_status st = BASE_OK;
    struct nn_name *name = config;
    const char *word;

    TRY(nn_line_word(line, "NAME", &word));
    TRY(nn_name_check(word));
    memcpy(name->text, word, strlen(word) + 1);
out:
    return st;
}
