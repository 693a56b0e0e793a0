/* SPDX-License-Identifier: MIT */
#include "http/token.h"

#include <string.h>

#include "base/mem.h"
#include "base/secret.h"

enum { LEAST = 16, MOST = 512 };

static base_status check(const char *text)
{
    size_t count = strlen(text);

    for (size_t i = 0; i < count; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return base_fail(BASE_ERR_USAGE, "a token is one line of printable characters");
    if (count < LEAST || count > MOST)
        return base_fail(BASE_ERR_USAGE,
                         "a token has %d to %d characters; `paceline token FILE` makes one", LEAST,
                         MOST);
    return BASE_OK;
}

base_status http_token_find(const char *path, const char *variable, char **token_p)
{
    char text[MOST + 3];
    base_status st = BASE_OK;
    bool found;

    *token_p = NULL;
    TRY(base_secret_find(path, variable, text, sizeof text, &found));
    if (found) {
        TRY(base_prefix(check(text), "%s", path != NULL ? path : variable));
        *token_p = base_strdup(text);
    }
out:
    explicit_bzero(text, sizeof text);
    return st;
}
