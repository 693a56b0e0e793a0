/* SPDX-License-Identifier: MIT
 *
 * The page for people at `GET /` of the inference port. While it is looked at, it reads the events
 * of /live (live.h).
 */
#ifndef SERVE_PAGE_H
#define SERVE_PAGE_H

extern const char serve_page[]; /* page.html; cmake/embed.cmake makes it */

#endif
