/* SPDX-License-Identifier: MIT
 *
 * A lab by its name or path. Those of labs/ are inside the program (cmake/labs.cmake), so that an
 * installed one needs no folder beside it.
 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "lab/lab.h"

static bool is_path(const char *which)
{
    size_t length = strlen(which);

    return strchr(which, '/') != NULL || (length > 5 && strcmp(which + length - 5, ".json") == 0);
}

/* "x/my lab.json" → "my-lab": part of a folder's name. */
static char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = base_strdup(slash != NULL ? slash + 1 : path);
    char *end = strstr(name, ".json");

    if (end != NULL && end > name)
        *end = '\0';
    for (char *at = name; *at != '\0'; at++)
        if ((unsigned char)*at <= ' ' || *at == 0x7f)
            *at = '-';
    return name;
}

static base_status find_builtin(const char *name, json_t **file_p)
{
    const char *names[64];
    size_t count = 0;

    for (; lab_builtins[count].name != NULL && count < sizeof names / sizeof *names; count++) {
        names[count] = lab_builtins[count].name;
        if (strcmp(names[count], name) == 0)
            return base_prefix(
                base_json_parse(lab_builtins[count].text, strlen(lab_builtins[count].text), file_p),
                "lab %s", name);
    }
    return base_unknown(BASE_ERR_USAGE, "lab (a path has a slash or ends with .json)", name, names,
                        count);
}

base_status lab_find(const char *which, json_t **file_p, char **name_p)
{
    base_status st = BASE_OK;

    *file_p = NULL;
    *name_p = NULL;
    if (is_path(which))
        TRY(base_json_load(which, LAB_MAX_FILE, file_p));
    else
        TRY(find_builtin(which, file_p));
    *name_p = is_path(which) ? name_of(which) : base_strdup(which);
out:
    return st;
}
