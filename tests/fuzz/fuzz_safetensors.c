/* covers: src/store/safetensors.c */
/* SPDX-License-Identifier: MIT
 *
 * The safetensors reader. Every byte of an accepted tensor is touched, so that a wrong place or
 * size is a finding, and the tensors must cover the data exactly once.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/safetensors.h"

static void use(const struct store_file *file, const uint8_t *bytes, size_t count)
{
    size_t total = 0;
    uint64_t length;
    uint8_t sum = 0;

    for (size_t i = 0; i < store_count(file); i++) {
        const struct store_tensor *t = store_at(file, i);
        size_t size = store_type_size(t->type);

        if (store_find(file, t->name) != t)
            abort();
        for (int k = 0; k < t->rank; k++)
            size *= t->shape[k];
        if (size != t->bytes)
            abort();
        for (size_t k = 0; k < t->bytes; k++)
            sum = (uint8_t)(sum + ((const uint8_t *)t->data)[k]);
        total += t->bytes;
    }
    memcpy(&length, bytes, sizeof length);
    if (total != count - sizeof length - length)
        abort();
    *(volatile uint8_t *)&sum = sum;
}

/* The way through a map, on few inputs: it costs system calls. */
static void open_too(const uint8_t *bytes, size_t count, base_code parsed)
{
    int fd = memfd_create("safetensors", MFD_CLOEXEC);
    char *path = base_format("/proc/self/fd/%d", fd);
    struct store_file *file;

    if (fd < 0 || write(fd, bytes, count) != (ssize_t)count)
        abort();
    if (store_open(path, &file) != parsed)
        abort();
    if (file != NULL)
        use(file, bytes, count);
    store_close(file);
    base_free(path);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct store_file *file;
    base_code parsed = store_parse(bytes, count, &file);

    if (file != NULL)
        use(file, bytes, count);
    store_close(file);
    if (count % 64 == 0)
        open_too(bytes, count, parsed);
    return 0;
}
