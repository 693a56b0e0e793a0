/* SPDX-License-Identifier: MIT
 *
 * Texts of ratings in a scratch folder, for tests that read them.
 */
#ifndef SUPPORT_TEXTS_H
#define SUPPORT_TEXTS_H

#include "recsys/recsys_private.h"

extern char *texts_folder; /* from texts_set_up on, which with texts_tear_down is for cmocka */
int texts_set_up(void **state);
int texts_tear_down(void **state);

void texts_put(const char *name, const char *text);
/* Of the folder; a failure ends the test. */
struct recsys_ratings *texts_open_with(const char *name, const struct recsys_options *options);
/* Of this text, without a cache. */
struct recsys_ratings *texts_open(const char *text);
/* Opening this text fails with a message that has these words. */
void texts_fail(const char *text, const struct recsys_options *options, const char *message);
/* Closes the ratings, which have that format and are `want`: "user item value time;" for each,
 * users and items by id. */
void texts_hold(struct recsys_ratings *ratings, const char *format, const char *want);
/* A few megabytes in an order that no block has whole: lines of many lengths, some bad, some again;
 * base_free. */
char *texts_large(bool netflix, size_t lines);

#endif
