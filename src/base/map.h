/* SPDX-License-Identifier: MIT
 *
 * Files as memory: read-only private maps. A file that is cut short while it is mapped ends a
 * process that reads the missing part with SIGBUS. base_map_copy makes an error of that; what is
 * read again and again while a training runs goes through it. Any thread may copy.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"

struct base_map {
    const uint8_t *bytes; /* NULL: the file is empty */
    size_t count;
    char *path;
    uid_t owner; /* of the file, and what others may do with it */
    mode_t mode;
};

base_status base_map_open(const char *path, struct base_map *map_p);
void base_map_close(struct base_map *map); /* accepts zeros */

/* `count` bytes from `from`, which lie in the map; fails if the file no longer has them. Costs no
 * system call. */
base_status base_map_copy(const struct base_map *map, size_t from, size_t count, void *to);

#endif
