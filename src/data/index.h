/* SPDX-License-Identifier: MIT
 *
 * An index: samples of a data set, or users of ratings, listed in a JSON file. `data poison` writes
 * what it has poisoned, `audit --drop` what it suspects, and `train --exclude` leaves out what an
 * index lists. It names the set by its digest, so that an index of another set is refused.
 */
#ifndef DATA_INDEX_H
#define DATA_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/json.h"

struct data_index {               /* zeros: there is none */
    char set[BASE_SHA256_HEX];    /* digest of the set that it is about */
    uint32_t of;                  /* training samples, or users, of that set */
    uint32_t count;               /* listed ones */
    uint32_t *samples;            /* (count), rising, below `of`; NULL: users are listed */
    char **users;                 /* (count) their ids; NULL: samples are listed */
    char digest[BASE_SHA256_HEX]; /* of the list itself; "" of zeros */
};

/* An index of samples, which are copied. */
void data_index_of_samples(const char *set, uint32_t of, const uint32_t *samples, uint32_t count,
                           struct data_index *index_p);
/* The same of users, whose ids it takes over. */
void data_index_of_users(const char *set, uint32_t of, char **users, uint32_t count,
                         struct data_index *index_p);
void data_index_fini(struct data_index *index); /* accepts zeros */

/* What the file says is checked by itself; whether it is about the set at hand, by its reader. */
base_status data_index_read(const char *path, struct data_index *index_p);
/* `more`: further fields for people and measurements, such as what was done; taken over. */
base_status data_index_write(const struct data_index *index, const char *path, json_t *more);

/* An error unless the index lists samples (or users) of the set of this digest. */
base_status data_index_check(const struct data_index *index, const char *set, bool users);

#endif
