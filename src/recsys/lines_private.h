/* SPDX-License-Identifier: MIT
 *
 * The parser of one thread: what it needs to know, and where it puts what it reads. Reachable from
 * memory, so that it can be tested and fuzzed without files.
 */
#ifndef RECSYS_LINES_PRIVATE_H
#define RECSYS_LINES_PRIVATE_H

#include "recsys/recsys_private.h"

/* What an attempt to read may take for granted until a line shows otherwise; then all is read again
 * without it. */
enum recsys_needs {
    RECSYS_NEEDS_USER_TEXTS = 1,
    RECSYS_NEEDS_ITEM_TEXTS = 2,
    RECSYS_NEEDS_FLOATS = 4,
};

struct recsys_parser {
    const struct recsys_layout *layout;
    bool has[RECSYS_ROLES + 1];
    size_t separator; /* its length */
    bool quick;       /* columns are in the usual order */
    struct recsys_census *users, *items;
    bool user_texts, item_texts, floats;
    int thread;
    struct recsys_levels *levels;
    _Atomic unsigned *broken; /* recsys_needs */
    struct recsys_block *block;
    bool continues;    /* the block is not the first of its file */
    uint32_t in_force; /* the item of the last heading */
    /* What was read. There is room for a rating every RECSYS_LEAST_LINE bytes. */
    uint32_t *user, *item, *time;
    uint8_t *code;
    float *value;
    uint32_t count, limit;
};

enum { RECSYS_LEAST_LINE = 4 }; /* bytes: "1,1\n" */

/* What is parsed from now on is cut so. */
void recsys_parser_take(struct recsys_parser *parser, const struct recsys_layout *layout);
/* Reads whole lines, which begin parser->block; RECSYS_SLACK zeros follow them. */
void recsys_parse(struct recsys_parser *parser, const char *text, size_t length);

#endif
