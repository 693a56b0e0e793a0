/* SPDX-License-Identifier: MIT */
#include "base/mem.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

static void *or_abort(void *memory)
{
    if (memory == NULL) {
        fputs("paceline: out of memory\n", stderr);
        abort();
    }
    return memory;
}

void *base_calloc(size_t count, size_t size)
{
    return or_abort(calloc(count ? count : 1, size));
}

void *base_realloc(void *old, size_t count, size_t size)
{
    return or_abort(reallocarray(old, count ? count : 1, size));
}

char *base_strdup(const char *text)
{
    return or_abort(strdup(text));
}

char *base_strndup(const char *text, size_t length)
{
    return or_abort(strndup(text, length));
}

char *base_format(const char *format, ...)
{
    va_list args;
    char *text = NULL;
    int length;

    va_start(args, format);
    length = vasprintf(&text, format, args);
    va_end(args);
    return or_abort(length < 0 ? NULL : text);
}

static base_status allocate(size_t count, size_t size, const char *what, void *memory_pp,
                            size_t *bytes_p)
{
    base_status st = BASE_OK;
    void *memory = NULL;
    bool huge;

    memcpy(memory_pp, &memory, sizeof memory);
    TRY(base_mul(count, size, bytes_p));
    TRY(base_add(*bytes_p, BASE_ALIGN, bytes_p));
    *bytes_p -= *bytes_p % BASE_ALIGN;
    huge = *bytes_p >= HUGE_PAGE;
    if (posix_memalign(&memory, huge ? HUGE_PAGE : BASE_ALIGN, *bytes_p) != 0)
        TRY(base_fail(BASE_ERR_MEMORY, "no memory for %s (%.1f MB)", what, (double)*bytes_p / 1e6));
    if (huge) /* kernels walk with large strides: 1.5 to 3 % of a step, measured */
        (void)madvise(memory, *bytes_p, MADV_HUGEPAGE);
    memcpy(memory_pp, &memory, sizeof memory);
out:
    return st;
}

base_status base_tensor_unset(size_t count, size_t size, const char *what, void *memory_pp)
{
    size_t bytes = 0;

    return allocate(count, size, what, memory_pp, &bytes);
}

base_status base_tensor(size_t count, size_t size, const char *what, void *memory_pp)
{
    size_t bytes = 0;
    void *memory;
    base_status st = allocate(count, size, what, memory_pp, &bytes);

    memcpy(&memory, memory_pp, sizeof memory);
    if (st == BASE_OK)
        memset(memory, 0, bytes);
    return st;
}

void base_free(void *memory)
{
    free(memory);
}

base_status base_mul(size_t a, size_t b, size_t *product_p)
{
    if (__builtin_mul_overflow(a, b, product_p))
        return base_fail(BASE_ERR_MEMORY, "a size overflows (%zu * %zu)", a, b);
    return BASE_OK;
}

base_status base_add(size_t a, size_t b, size_t *sum_p)
{
    if (__builtin_add_overflow(a, b, sum_p))
        return base_fail(BASE_ERR_MEMORY, "a size overflows (%zu + %zu)", a, b);
    return BASE_OK;
}

uint64_t base_peak_memory(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0;
    return (uint64_t)usage.ru_maxrss * 1024;
}

/* /proc/self/statm counts pages: size, resident, and those of the resident that are not anonymous.
 */
void base_resident_memory(uint64_t *own_p, uint64_t *others_p)
{
    FILE *file = fopen("/proc/self/statm", "re");
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned long long resident = 0, others = 0;

    if (file == NULL || fscanf(file, "%*u %llu %llu", &resident, &others) != 2)
        resident = others = 0;
    if (file != NULL)
        fclose(file);
    *own_p = (resident - others) * page;
    *others_p = others * page;
}

/* The number in a file of one line; "max" and what is no number: none. */
static uint64_t read_limit(const char *path)
{
    FILE *file = fopen(path, "re");
    unsigned long long limit = 0;

    if (file == NULL)
        return UINT64_MAX;
    if (fscanf(file, "%llu", &limit) != 1)
        limit = 0;
    fclose(file);
    return limit > 0 ? limit : UINT64_MAX;
}

/* The least limit of a control group and of the groups that it is in. `group` is cut. */
static uint64_t group_limit(const char *root, char *group, const char *name)
{
    uint64_t least = UINT64_MAX;

    for (;;) {
        char *path = base_format("%s%s/%s", root, group, name), *slash = strrchr(group, '/');
        uint64_t limit = read_limit(path);

        base_free(path);
        least = limit < least ? limit : least;
        if (slash == NULL)
            return least;
        *slash = '\0';
    }
}

/* Lines of /proc/self/cgroup are "NUMBER:CONTROLLERS:PATH"; version 2 has number 0 and no names. */
uint64_t base_memory_limit(void)
{
    uint64_t limit = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[4096];

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *group = strchr(line, '/');
        uint64_t of = UINT64_MAX;

        if (group == NULL)
            continue;
        group[strcspn(group, "\n")] = '\0';
        if (strncmp(line, "0::", 3) == 0)
            of = group_limit("/sys/fs/cgroup", group, "memory.max");
        else if (strstr(line, ":memory:") != NULL)
            of = group_limit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
        limit = of < limit ? of : limit;
    }
    if (file != NULL)
        fclose(file);
    return limit;
}
