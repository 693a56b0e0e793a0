/* SPDX-License-Identifier: MIT
 *
 * A token that clients show: "Authorization: Bearer TOKEN". It comes from a file that only its
 * owner can read, or from the environment, never from a command line, which other users of the
 * machine see.
 */
#ifndef HTTP_TOKEN_H
#define HTTP_TOKEN_H

#include "base/status.h"

/* One line of 16 to 512 printable characters, from `path`; where that is NULL, from the variable,
 * which is then removed from the environment; where that is unset, *token_p is NULL. base_free. */
base_status http_token_find(const char *path, const char *variable, char **token_p);

#endif
