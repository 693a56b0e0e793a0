/* SPDX-License-Identifier: MIT */
#include "base/npy.h"

#include <assert.h>
#include <string.h>

#include "base/str.h"

enum { ALIGNED = 64, BEFORE = 10 /* bytes: magic, version, length of the header */, ITEM = 4 };

/* "{'descr': '<f4', 'fortran_order': False, 'shape': (16, 32), }", filled up with blanks, so that
 * the values begin at a multiple of 64 bytes. */
static void put_header(struct base_str *header, const char *type, const size_t *shape,
                       int dimensions)
{
    base_str_add(header, "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
    for (int i = 0; i < dimensions; i++)
        base_str_add(header, i == 0 ? "%zu," : " %zu,", shape[i]);
    base_str_add(header, "), }");
    while ((BEFORE + header->length + 1) % ALIGNED != 0)
        base_str_add(header, " ");
    base_str_add(header, "\n");
}

base_status base_npy_begin(const char *path, const char *type, const size_t *shape, int dimensions,
                           struct base_npy *npy)
{
    base_status st = BASE_OK;
    struct base_str header = {0};
    unsigned char before[BEFORE] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};

    assert(dimensions >= 1 && dimensions <= BASE_NPY_DIMENSIONS);
    *npy = (struct base_npy){.left = ITEM};
    for (int i = 0; i < dimensions; i++)
        npy->left *= shape[i];
    put_header(&header, type, shape, dimensions);
    before[8] = (unsigned char)(header.length & 0xff);
    before[9] = (unsigned char)(header.length >> 8);
    TRY(base_replace_begin(path, &npy->file));
    TRY(base_replace_write(&npy->file, before, sizeof before));
    TRY(base_replace_write(&npy->file, header.text, header.length));
out:
    base_str_fini(&header);
    return st;
}

base_status base_npy_write(struct base_npy *npy, const void *values, size_t bytes)
{
    assert(bytes <= npy->left);
    npy->left -= bytes;
    return base_replace_write(&npy->file, values, bytes);
}

base_status base_npy_commit(struct base_npy *npy)
{
    if (npy->left > 0)
        return base_fail(BASE_ERR_DATA, "%s lacks %zu bytes of its values", npy->file.path,
                         npy->left);
    return base_replace_commit(&npy->file);
}

void base_npy_end(struct base_npy *npy)
{
    if (npy->file.path != NULL)
        base_replace_end(&npy->file);
    *npy = (struct base_npy){0};
}
