/* SPDX-License-Identifier: MIT
 *
 * A token that clients show: "Authorization: Bearer TOKEN".
 */
#ifndef HTTP_TOKEN_H
#define HTTP_TOKEN_H

#include "base/status.h"

/* Reads one line of 16 to 512 printable characters from the file or the variable (base/secret.h);
 * NULL if there is neither. base_free. */
base_status http_token_find(const char *path, const char *variable, char **token_p);

#endif
