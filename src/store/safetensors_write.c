/* SPDX-License-Identifier: MIT
 *
 * Writing safetensors: the header first, from shapes alone, then the bytes as they come, so a
 * model is never copied as a whole. A file that is not finished is removed. A writer owns its
 * stream and belongs to one thread at a time. Not atomic: save.c is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "store/safetensors.h"
#include "store/store_private.h"

enum { DATA_ALIGN = 64 };

struct store_writer {
    char *path;
    FILE *stream;
    size_t left; /* bytes of data still to come */
};

static base_status describe(json_t *header, const struct store_tensor *t, size_t *offset)
{
    base_status st = BASE_OK;
    json_t *shape = json_array(), *entry = NULL;
    size_t bytes = 0, begin = *offset;

    if (t->rank < 0 || t->rank > STORE_MAX_RANK)
        TRY(base_fail(BASE_ERR_INTERNAL, "rank %d is not from 0 to %d", t->rank, STORE_MAX_RANK));
    TRY(store_tensor_size(t, &bytes));
    TRY(base_add(begin, bytes, offset));
    for (int i = 0; i < t->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)t->shape[i]));
    if (json_object_get(header, t->name) != NULL)
        TRY(base_fail(BASE_ERR_INTERNAL, "the name is taken"));
    entry = json_pack("{s:s,s:O,s:[I,I]}", "dtype", store_types[t->type].name, "shape", shape,
                      "data_offsets", (json_int_t)begin, (json_int_t)*offset);
    if (json_object_set(header, t->name, entry) != 0)
        TRY(base_fail(BASE_ERR_INTERNAL, "the name is not valid UTF-8"));
out:
    json_decref(entry);
    json_decref(shape);
    return base_prefix(st, "tensor '%s'", t->name);
}

static base_status write_header(struct store_writer *w, const json_t *header)
{
    base_status st = BASE_OK;
    char *text = json_dumps(header, JSON_COMPACT);
    size_t length, padded;
    uint8_t prefix[8];

    if (text == NULL)
        TRY(base_fail(BASE_ERR_MEMORY, "no memory for the header of %s", w->path));
    length = strlen(text);
    padded = (length + sizeof prefix + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN - sizeof prefix;
    if (padded > STORE_MAX_HEADER)
        TRY(base_fail(BASE_ERR_INTERNAL, "%s: too many tensors for one file", w->path));
    for (size_t i = 0; i < sizeof prefix; i++)
        prefix[i] = (uint8_t)(padded >> 8 * i);
    if (fwrite(prefix, 1, sizeof prefix, w->stream) != sizeof prefix ||
        fprintf(w->stream, "%-*s", (int)padded, text) < 0)
        TRY(base_write_failed(w->path));
out:
    free(text);
    return st;
}

base_status store_create(const char *path, const struct store_tensor *tensors, size_t count,
                         struct store_writer **writer_p)
{
    base_status st = BASE_OK;
    struct store_writer *w = base_calloc(1, sizeof *w);
    /* Programs that load weights for PyTorch ask for this mark. */
    json_t *header = json_pack("{s:{s:s}}", STORE_METADATA, "format", "pt");

    *writer_p = NULL;
    w->path = base_strdup(path);
    for (size_t i = 0; i < count; i++)
        TRY(describe(header, &tensors[i], &w->left));
    if ((w->stream = fopen(path, "wbe")) == NULL)
        TRY(base_write_failed(w->path));
    TRY(write_header(w, header));
    *writer_p = w;
    w = NULL;
out:
    json_decref(header);
    store_abandon(w);
    return st;
}

base_status store_write(struct store_writer *writer, const void *bytes, size_t count)
{
    if (count > writer->left)
        return base_fail(BASE_ERR_INTERNAL, "%s: more bytes than its tensors have", writer->path);
    if (count > 0 && fwrite(bytes, 1, count, writer->stream) != count)
        return base_write_failed(writer->path);
    writer->left -= count;
    return BASE_OK;
}

base_status store_finish(struct store_writer *writer)
{
    base_status st = BASE_OK;
    int closed;

    if (writer->left != 0)
        TRY(base_fail(BASE_ERR_INTERNAL, "%s: %zu bytes of its tensors were not written",
                      writer->path, writer->left));
    if (fflush(writer->stream) != 0 || fsync(fileno(writer->stream)) != 0)
        TRY(base_write_failed(writer->path));
    closed = fclose(writer->stream);
    writer->stream = NULL;
    if (closed != 0) {
        st = base_write_failed(writer->path);
        unlink(writer->path);
    }
out:
    store_abandon(writer);
    return st;
}

void store_abandon(struct store_writer *writer)
{
    if (writer == NULL)
        return;
    if (writer->stream != NULL) {
        fclose(writer->stream);
        unlink(writer->path);
    }
    base_free(writer->path);
    base_free(writer);
}
