/* SPDX-License-Identifier: MIT
 *
 * A page for people: one text with nothing from elsewhere.
 */
#ifndef HTTP_PAGE_H
#define HTTP_PAGE_H

#include "http/server.h"

/* Answers with an HTML text (copied) that has exactly one <style> and one <script>: a browser runs
 * nothing else in it, whatever the texts that the script shows may contain. */
void http_answer_page(struct http_request *request, const char *html);

#endif
