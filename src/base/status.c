/* SPDX-License-Identifier: MIT */
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char message[1024];
static _Thread_local unsigned blamed;

void base_keep_message(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    blamed = 0;
}

base_status base_blame(base_status st, unsigned worker)
{
    blamed = worker;
    return st;
}

unsigned base_blamed(void)
{
    return blamed;
}

base_status base_prefix(base_status st, const char *format, ...)
{
    char *prefix = NULL, *rest;
    va_list args;

    if (st == BASE_OK)
        return st;
    rest = strdup(message);
    va_start(args, format);
    if (vasprintf(&prefix, format, args) < 0)
        prefix = NULL;
    va_end(args);
    if (prefix != NULL && rest != NULL)
        st = base_fail(st, "%s: %s", prefix, rest);
    free(prefix);
    free(rest);
    return st;
}

const char *base_message(void)
{
    return message;
}

const char *base_code_name(base_code code)
{
    static const char *const names[] = {
        [BASE_OK] = "ok",
        [BASE_ERR_USAGE] = "usage",
        [BASE_ERR_IO] = "io",
        [BASE_ERR_DATA] = "data",
        [BASE_ERR_MODEL] = "model",
        [BASE_ERR_MEMORY] = "memory",
        [BASE_ERR_NETWORK] = "network",
        [BASE_ERR_PEER_LOST] = "peer-lost",
        [BASE_ERR_TIMEOUT] = "timeout",
        [BASE_ERR_DIVERGED] = "diverged",
        [BASE_ERR_INTERRUPTED] = "interrupted",
        [BASE_ERR_INTERNAL] = "internal",
    };
    return names[code];
}

int base_exit_code(base_code code)
{
    if (code == BASE_OK)
        return 0;
    return code == BASE_ERR_USAGE ? 2 : 1;
}
