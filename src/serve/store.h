/* SPDX-License-Identifier: MIT
 *
 * The model store: a folder whose folders are runs or checkpoints. It is the only place that
 * registration takes models from. Names are resolved by the kernel beneath the folder (openat2),
 * so that no "..", no absolute path and no link leads out of it; a URL is no name at all.
 */
#ifndef SERVE_STORE_H
#define SERVE_STORE_H

#include "serve/loaded.h"

struct serve_store {
    char *path;
    int fd;
};

enum serve_store_fault {
    SERVE_STORE_FINE,
    SERVE_STORE_URL,     /* the name is a URL, which is not supported */
    SERVE_STORE_OUTSIDE, /* the name leads out of the store */
    SERVE_STORE_ABSENT,
    SERVE_STORE_BAD, /* the store has it, but it is not a model */
    SERVE_STORE_MEMORY,
};

base_status serve_store_open(const char *path, struct serve_store **store_p);
void serve_store_close(struct serve_store *store); /* accepts NULL */

/* Opens a model of the store. After a fault base_message has the details. */
enum serve_store_fault serve_store_load(const struct serve_store *store, const char *name,
                                        int batch, struct serve_loaded **loaded_p);

#endif
