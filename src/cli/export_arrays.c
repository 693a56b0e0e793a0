/* SPDX-License-Identifier: MIT
 *
 * Files of NumPy, version 1.0 of the format: a magic, the length of a header, the header, which is
 * a literal of Python and ends at a multiple of 64 bytes, and the numbers as they are in
 * model.safetensors, little-endian and row by row. Nothing of it is kept in memory.
 */
#include "cli/export_arrays.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "recsys/saved.h"

enum { ALIGN = 64, PREFIX = 10 }; /* bytes: of the header's end; before it */

static const char *kind_of(enum store_type type)
{
    switch (type) {
    case STORE_F32:
        return "<f4";
    case STORE_F16:
        return "<f2";
    case STORE_I64:
        return "<i8";
    case STORE_U32:
        return "<u4";
    case STORE_U8:
        return "|u1";
    case STORE_BF16:
        break;
    }
    return NULL;
}

/* The bytes before the numbers. */
static void add_header(const struct store_tensor *tensor, struct base_str *text)
{
    struct base_str header = {0};
    size_t length;

    base_str_add(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                 kind_of(tensor->type));
    for (int i = 0; i < tensor->rank; i++)
        base_str_add(&header, "%" PRIu64 ",", tensor->shape[i]);
    base_str_add(&header, ")}");
    length = (PREFIX + header.length + 1 + ALIGN - 1) / ALIGN * ALIGN - PREFIX;
    base_str_append(text, "\x93NUMPY\1\0", 8);
    base_str_append(text, (const char[]){(char)(length & 255), (char)(length >> 8)}, 2);
    base_str_add(text, "%-*s\n", (int)length - 1, header.text);
    base_str_fini(&header);
}

static base_status write_file(const char *folder, const char *name, const struct base_str *text,
                              const void *bytes, size_t count, json_t *files)
{
    base_status st = BASE_OK;
    struct base_replacement r = {.fd = -1};
    char *path = base_format("%s/%s", folder, name);

    TRY(base_replace_begin(path, &r));
    TRY(base_replace_write(&r, text->text, text->length));
    TRY(base_replace_write(&r, bytes, count));
    TRY(base_replace_commit(&r));
    json_array_append_new(files, base_json_text(name));
out:
    base_replace_end(&r);
    base_free(path);
    return st;
}

static base_status write_tensor(const struct store_tensor *tensor, const char *folder,
                                json_t *files)
{
    base_status st = BASE_OK;
    struct base_str header = {0};
    char *name = base_format("%s.npy", tensor->name);

    if (strchr(name, '/') != NULL || kind_of(tensor->type) == NULL)
        TRY(base_fail(BASE_ERR_DATA, "the tensor '%s' cannot be an array of NumPy", tensor->name));
    add_header(tensor, &header);
    TRY(write_file(folder, name, &header, tensor->data, tensor->bytes, files));
out:
    base_str_fini(&header);
    base_free(name);
    return st;
}

static base_status write_ids(const struct recsys_ids *ids, const char *folder, const char *name,
                             json_t *files)
{
    struct base_str text = {0};
    struct recsys_id id;
    base_status st;

    for (uint32_t i = 0; i < ids->count; i++)
        base_str_add(&text, "%s\n", recsys_id_text(ids, i, &id));
    st = write_file(folder, name, &text, NULL, 0, files);
    base_str_fini(&text);
    return st;
}

base_status cli_export_arrays(const struct store_checkpoint *checkpoint, const char *folder,
                              json_t **files_p)
{
    base_status st = BASE_OK;
    struct recsys_saved *saved = NULL;
    struct store_file *model = NULL;
    char *path = NULL;

    *files_p = json_array();
    TRY(recsys_saved_outline(checkpoint, &saved));
    TRY(store_checkpoint_file(checkpoint, RECSYS_MODEL_FILE, &path));
    TRY(store_open(path, &model));
    TRY(base_make_dirs(folder));
    for (size_t i = 0; i < store_count(model); i++)
        TRY(write_tensor(store_at(model, i), folder, *files_p));
    TRY(write_ids(&saved->users, folder, "users.txt", *files_p));
    TRY(write_ids(&saved->items, folder, "items.txt", *files_p));
out:
    store_close(model);
    recsys_saved_close(saved);
    base_free(path);
    return st;
}
