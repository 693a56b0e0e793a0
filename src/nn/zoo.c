/* SPDX-License-Identifier: MIT
 *
 * From what a person writes after --model to a model text: a name of the zoo (with arguments
 * after a colon) or a file. The zoo comes first; a file of the same name is ./NAME.
 */
#include "nn/zoo.h"

#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "nn/graph.h"

static base_status unknown_model(const char *model)
{
    base_status st;
    const char **names = base_calloc(nn_zoo_count, sizeof *names);

    for (size_t i = 0; i < nn_zoo_count; i++)
        names[i] = nn_zoo_registry[i]->example != NULL ? nn_zoo_registry[i]->example
                                                       : nn_zoo_registry[i]->name;
    st = base_unknown(BASE_ERR_USAGE, "model (no such file either)", model, names, nn_zoo_count);
    base_free(names);
    return st;
}

static base_status zoo_text(const struct nn_zoo *zoo, const char *arguments, char **text_p)
{
    if (zoo->arguments == NULL && arguments != NULL)
        return base_fail(BASE_ERR_USAGE, "the model %s takes no arguments (':%s')", zoo->name,
                         arguments);
    if (zoo->arguments != NULL && arguments == NULL && !zoo->optional)
        return base_fail(BASE_ERR_USAGE, "the model %s needs arguments: %s:%s, such as %s",
                         zoo->name, zoo->name, zoo->arguments, zoo->example);
    return zoo->text(arguments, text_p);
}

/* Some editors begin a UTF-8 file with it. */
static const char BYTE_ORDER_MARK[] = "\xef\xbb\xbf";

static base_status file_text(const char *path, char **text_p)
{
    base_status st = BASE_OK;
    char *text = NULL;
    size_t count;

    TRY(base_file_read(path, NN_MAX_TEXT, &text, &count));
    if (strlen(text) != count)
        TRY(base_fail(BASE_ERR_MODEL, "%s holds zero bytes: not a model file", path));
    if (strncmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
        memmove(text, text + strlen(BYTE_ORDER_MARK), count + 1 - strlen(BYTE_ORDER_MARK));
    *text_p = text;
    text = NULL;
out:
    base_free(text);
    return st;
}

const struct nn_zoo *nn_zoo_find(const char *model, const char **arguments_p)
{
    size_t length = strcspn(model, ":");

    *arguments_p = model[length] == ':' ? model + length + 1 : NULL;
    for (size_t i = 0; i < nn_zoo_count; i++) {
        const struct nn_zoo *zoo = nn_zoo_registry[i];

        if (strlen(zoo->name) == length && strncmp(zoo->name, model, length) == 0)
            return zoo;
    }
    return NULL;
}

base_status nn_model_text(const char *model, char **text_p)
{
    const char *arguments = NULL;
    const struct nn_zoo *zoo = nn_zoo_find(model, &arguments);

    *text_p = NULL;
    if (zoo != NULL)
        return zoo_text(zoo, arguments, text_p);
    if (base_exists(model) || strchr(model, '/') != NULL)
        return file_text(model, text_p);
    return unknown_model(model);
}
