/* SPDX-License-Identifier: MIT
 *
 * What the server is doing, for the pages that look (http/live.h).
 */
#ifndef SERVE_LIVE_H
#define SERVE_LIVE_H

#include "http/live.h"
#include "serve/serve_private.h"

http_live_tell serve_live_tell; /* of a struct serve */

#endif
