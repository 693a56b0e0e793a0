/* SPDX-License-Identifier: MIT
 *
 * The one error type. A function that can fail returns a base_status; the first function to
 * decide that something is wrong calls base_fail, which keeps one sentence for the person.
 * Only cli/ prints it. The message is per thread; a thread that fails hands its
 * message over with base_message() before it ends.
 */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include <stdbool.h>

#define BASE_MUST_USE [[nodiscard]]

enum BASE_MUST_USE base_code {
    BASE_OK = 0,
    BASE_ERR_USAGE,       /* the command line is wrong: exit code 2 */
    BASE_ERR_IO,          /* the system refused: open, read, write, disk full */
    BASE_ERR_DATA,        /* bytes from outside are not what they should be */
    BASE_ERR_MODEL,       /* a model does not parse, or does not fit its data */
    BASE_ERR_MEMORY,      /* something sized by input did not fit */
    BASE_ERR_NETWORK,     /* a download failed, a connection was refused */
    BASE_ERR_PEER_LOST,   /* a worker of the group is gone; comm/group.h says which */
    BASE_ERR_TIMEOUT,     /* a deadline passed */
    BASE_ERR_DIVERGED,    /* the loss is no longer a number */
    BASE_ERR_INTERRUPTED, /* the person asked to stop */
    BASE_ERR_INTERNAL,    /* our own bug, reported instead of crashing */
};

typedef enum base_code base_code;
typedef enum base_code base_status;

/* Runs an expression that yields a base_status; jumps to `out` when it is not BASE_OK.
 * Needs a local `base_status st` and a label `out`. */
#define TRY(expr)          \
    do {                   \
        st = (expr);       \
        if (st != BASE_OK) \
            goto out;      \
    } while (0)

/* base_fail(code, format, ...) keeps the message of this thread and returns `code`. %m works as in
 * syslog(3). A macro, so that compilers and analyzers see in every file that it never returns
 * BASE_OK for an error. */
#define base_fail(code, ...) base_failed((base_keep_message(__VA_ARGS__), (code)))
void base_keep_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline base_status base_failed(base_code code)
{
    return code;
}

/* Puts "prefix: " before the kept message, for a caller that knows the file or the line. */
base_status base_prefix(base_status st, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Names the worker that the kept message is about, until the next base_fail; 0: none. */
base_status base_blame(base_status st, unsigned worker);
unsigned base_blamed(void);

const char *base_message(void);             /* of the last base_fail of this thread, or "" */
const char *base_code_name(base_code code); /* "usage", "io", …: the "code" of JSON errors */
int base_exit_code(base_code code);         /* 0, 1 or 2 */

/* For the rare call whose failure changes nothing (clean-up after another failure). */
static inline void base_ignore(base_code st)
{
    (void)st;
}

#endif
