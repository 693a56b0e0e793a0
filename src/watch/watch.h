/* SPDX-License-Identifier: MIT
 *
 * A live page of a run, over HTTP: `GET /` the page, `/live` its events, `/report` the run as
 * `paceline report` would write it now, `/metrics` for Prometheus. Only this host can connect
 * unless there is a token. It reads the run's folder once a second and writes nothing there.
 */
#ifndef WATCH_WATCH_H
#define WATCH_WATCH_H

#include <stdint.h>

#include "base/json.h"

enum { WATCH_PORT = 8090 };

struct watch_setup {
    const char *run, *runs_dir;
    const char *host;       /* an address */
    int64_t port;           /* 0: any that is free; -1: WATCH_PORT, or any if that is taken */
    const char *token_file; /* NULL: PACELINE_WATCH_TOKEN, if that is set */
    const char *ready_file; /* gets {"watch":"http://…"}; NULL: none */
};

/* Until a signal asks to stop. */
base_status watch_run(const struct watch_setup *setup);

extern const char watch_page[]; /* page.html; cmake/embed.cmake makes it */

#endif
