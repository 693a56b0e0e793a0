/* SPDX-License-Identifier: MIT
 *
 * The page for people at `GET /` of the inference port, and what it asks for once a second while
 * it is looked at.
 */
#ifndef SERVE_PAGE_H
#define SERVE_PAGE_H

#include "http/server.h"

extern const char serve_page[]; /* page.html; cmake/embed.cmake makes it */

http_handle serve_page_show, serve_page_live;

#endif
