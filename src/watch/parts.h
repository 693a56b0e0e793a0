/* SPDX-License-Identifier: MIT
 *
 * The live page's parts: pieces of HTML, drawn as the report draws them, of which a page is sent
 * those that have changed. Their size is bounded, as what they are drawn from is.
 */
#ifndef WATCH_PARTS_H
#define WATCH_PARTS_H

#include "watch/look.h"

enum { WATCH_PARTS = 7 };

struct watch_parts { /* init by = {0} */
    char *texts[WATCH_PARTS];
    uint64_t version; /* of the look that they show */
};

/* Draws them anew. Returns an event {"parts":{NAME:HTML,…},"ended":BOOLEAN} of those that have
 * changed; NULL: none has. base_free. */
char *watch_parts_draw(struct watch_parts *parts, const struct watch_look *look);
/* The same of all, as they were drawn last. */
char *watch_parts_all(const struct watch_parts *parts, const struct watch_look *look);
void watch_parts_fini(struct watch_parts *parts);

#endif
