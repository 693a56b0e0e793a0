/* SPDX-License-Identifier: MIT
 *
 * The job's secret: 32 random bytes, written as a token: "pl1-" and 64 hexadecimal digits. It
 * comes from a file that only its owner can read, or from PACELINE_TOKEN; it is never an argument,
 * and children get it through their control connection, not their environment.
 */
#ifndef COMM_SECRET_H
#define COMM_SECRET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { COMM_SECRET_BYTES = 32, COMM_TOKEN_TEXT = 4 + 2 * COMM_SECRET_BYTES + 1 };

struct comm_secret {
    uint8_t key[COMM_SECRET_BYTES];
};

base_status comm_secret_new(struct comm_secret *secret_p);
void comm_secret_text(const struct comm_secret *secret, char token[COMM_TOKEN_TEXT]);
base_status comm_secret_parse(const char *token, struct comm_secret *secret_p);

/* Makes a new file of mode 0600. */
base_status comm_secret_save(const struct comm_secret *secret, const char *path);

/* Reads the file `path` (--token-file) if given, else PACELINE_TOKEN; with neither *found_p is
 * false (base/secret.h). */
base_status comm_secret_find(const char *path, struct comm_secret *secret_p, bool *found_p);

#endif
