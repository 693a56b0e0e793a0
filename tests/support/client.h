/* SPDX-License-Identifier: MIT
 *
 * A client of HTTP servers on 127.0.0.1 that sends exactly the bytes it is told to, right or wrong.
 */
#ifndef SUPPORT_CLIENT_H
#define SUPPORT_CLIENT_H

#include <stddef.h>

/* A connection; the test fails where there is none. close() it. */
int support_connect(int port);
void support_say(int fd, const char *bytes, size_t count); /* what is refused is lost */
void support_say_text(int fd, const char *text);

/* What comes until the other side closes, at most 30 s; ends with a zero. base_free. */
char *support_hear(int fd);
/* What comes until `text` has come, at most 30 s; ends with a zero. base_free. */
char *support_hear_until(int fd, const char *text);

/* One request on a connection of its own ("Connection: close" is in it); the status of its answer
 * (0: none), and the whole of it where answer_p is not NULL. */
int support_ask(int port, const char *request, char **answer_p);
int support_status(const char *answer);

#endif
