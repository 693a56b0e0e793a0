/* SPDX-License-Identifier: MIT
 *
 * What the server is doing, told once a second to the pages that look (server-sent events). While
 * no page looks, its thread sleeps.
 */
#ifndef SERVE_LIVE_H
#define SERVE_LIVE_H

#include "serve/serve_private.h"

base_status serve_live_new(struct serve *serve, struct serve_live **live_p);
void serve_live_free(struct serve_live *live); /* accepts NULL */

#endif
