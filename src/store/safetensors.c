/* SPDX-License-Identifier: MIT
 *
 * Reading safetensors. Layout: u64 little-endian header length, that many bytes of JSON
 * {"NAME":{"dtype","shape","data_offsets":[begin,end]},…}, then the data, which the tensors must
 * cover without hole or overlap. The reader accepts no more than the reference implementation
 * does. A file owns its map and its JSON (names point into it). Any number of threads may read an
 * open file. The writer is safetensors_write.c.
 */
#include "store/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "store/store_private.h"

const struct store_type_info store_types[STORE_TYPES] = {
    [STORE_F32] = {"F32", 4}, [STORE_I64] = {"I64", 8}, [STORE_U32] = {"U32", 4},
    [STORE_U8] = {"U8", 1},   [STORE_F16] = {"F16", 2}, [STORE_BF16] = {"BF16", 2},
};

struct store_file {
    struct base_map map; /* empty when the bytes belong to the caller */
    json_t *header;
    struct store_tensor *tensors;
    size_t count;
};

size_t store_type_size(enum store_type type)
{
    return store_types[type].size;
}

base_status store_tensor_size(const struct store_tensor *t, size_t *bytes_p)
{
    size_t bytes = store_types[t->type].size;

    for (int i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(bytes, t->shape[i], &bytes))
            return base_fail(BASE_ERR_DATA, "the shape is too large for any memory");
    *bytes_p = bytes;
    return BASE_OK;
}

static base_status parse_type(const json_t *entry, enum store_type *type_p)
{
    base_status st = BASE_OK;
    const char *name;

    TRY(base_json_string(entry, "dtype", &name));
    for (size_t i = 0; i < STORE_TYPES; i++) {
        if (strcmp(store_types[i].name, name) == 0) {
            *type_p = (enum store_type)i;
            return BASE_OK;
        }
    }
    TRY(base_fail(BASE_ERR_DATA, "type %s is not supported; F32, F16, BF16, I64, U32 and U8 are",
                  name));
out:
    return st;
}

static base_status parse_natural(const json_t *value, const char *key, uint64_t *number_p)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return base_fail(BASE_ERR_DATA, "\"%s\" must hold whole numbers from 0", key);
    *number_p = (uint64_t)json_integer_value(value);
    return BASE_OK;
}

static base_status parse_shape(const json_t *entry, struct store_tensor *t)
{
    base_status st = BASE_OK;
    json_t *shape;

    TRY(base_json_array(entry, "shape", &shape));
    if (json_array_size(shape) > STORE_MAX_RANK)
        TRY(base_fail(BASE_ERR_DATA, "%zu dimensions, at most %d are supported",
                      json_array_size(shape), STORE_MAX_RANK));
    t->rank = (int)json_array_size(shape);
    for (int i = 0; i < t->rank; i++)
        TRY(parse_natural(json_array_get(shape, (size_t)i), "shape", &t->shape[i]));
    TRY(store_tensor_size(t, &t->bytes));
out:
    return st;
}

static base_status parse_tensor(const char *name, const json_t *entry, const uint8_t *data,
                                size_t data_bytes, struct store_tensor *t)
{
    base_status st = BASE_OK;
    uint64_t begin = 0, end = 0;
    json_t *offsets;

    t->name = name;
    if (!json_is_object(entry))
        TRY(base_fail(BASE_ERR_DATA, "its description is not an object"));
    TRY(parse_type(entry, &t->type));
    TRY(parse_shape(entry, t));
    TRY(base_json_array(entry, "data_offsets", &offsets));
    if (json_array_size(offsets) != 2)
        TRY(base_fail(BASE_ERR_DATA, "\"data_offsets\" must be [begin, end]"));
    TRY(parse_natural(json_array_get(offsets, 0), "data_offsets", &begin));
    TRY(parse_natural(json_array_get(offsets, 1), "data_offsets", &end));
    if (begin > end || end > data_bytes)
        TRY(base_fail(BASE_ERR_DATA, "bytes %llu to %llu lie outside the %zu bytes of data",
                      (unsigned long long)begin, (unsigned long long)end, data_bytes));
    if (end - begin != t->bytes)
        TRY(base_fail(BASE_ERR_DATA, "%llu bytes of data, but its shape needs %zu",
                      (unsigned long long)(end - begin), t->bytes));
    t->data = data + begin;
out:
    return base_prefix(st, "tensor '%s'", name);
}

static int by_place(const void *a, const void *b)
{
    const struct store_tensor *s = a, *t = b;

    if (s->data != t->data)
        return (const uint8_t *)s->data < (const uint8_t *)t->data ? -1 : 1;
    return (s->bytes > t->bytes) -
           (s->bytes < t->bytes); /* an empty tensor comes before the one at its place */
}

/* The tensors, sorted by place, must cover the data exactly. */
static base_status check_cover(const struct store_file *f, const uint8_t *data, size_t data_bytes)
{
    const uint8_t *at = data;

    for (size_t i = 0; i < f->count; i++) {
        const struct store_tensor *t = &f->tensors[i];

        if ((const uint8_t *)t->data != at)
            return base_fail(BASE_ERR_DATA, "tensor '%s' %s", t->name,
                             (const uint8_t *)t->data < at ? "overlaps another one"
                                                           : "has unused bytes before it");
        at += t->bytes;
    }
    if (at != data + data_bytes)
        return base_fail(BASE_ERR_DATA, "%zu bytes after the last tensor belong to none",
                         (size_t)(data + data_bytes - at));
    return BASE_OK;
}

static base_status parse_tensors(struct store_file *f, const uint8_t *data, size_t data_bytes)
{
    base_status st = BASE_OK;
    const char *name;
    json_t *entry;

    TRY(base_tensor(json_object_size(f->header), sizeof *f->tensors, "a table of tensors",
                    &f->tensors));
    json_object_foreach(f->header, name, entry)
    {
        if (strcmp(name, STORE_METADATA) == 0)
            continue;
        TRY(parse_tensor(name, entry, data, data_bytes, &f->tensors[f->count]));
        f->count++;
    }
    qsort(f->tensors, f->count, sizeof *f->tensors, by_place);
    TRY(check_cover(f, data, data_bytes));
out:
    return st;
}

/* torch.save writes a zip file; old versions wrote a pickle. */
static bool is_torch(const uint8_t *bytes)
{
    return memcmp(bytes, "PK\003\004", 4) == 0 || memcmp(bytes, "\x80\002\x8a", 3) == 0;
}

static base_status parse_header(struct store_file *f, const void *bytes, size_t count)
{
    base_status st = BASE_OK;
    struct base_cursor c = base_cursor_of(bytes, count);
    const uint8_t *text;
    uint64_t length;

    if (count < sizeof length)
        TRY(base_fail(BASE_ERR_DATA, "not a safetensors file: only %zu bytes long", count));
    TRY(base_cursor_le64(&c, &length));
    if (length > STORE_MAX_HEADER && is_torch(bytes))
        TRY(base_fail(
            BASE_ERR_DATA,
            "a file of PyTorch; convert it: python3 torch_weights.py to-paceline MODEL.pt "
            "OUT.safetensors (in tools/ of the sources, installed in share/paceline/)"));
    if (length > STORE_MAX_HEADER)
        TRY(base_fail(BASE_ERR_DATA, "not a safetensors file: its header would have %llu bytes",
                      (unsigned long long)length));
    if (length > base_cursor_left(&c))
        TRY(base_fail(BASE_ERR_DATA, "cut off inside its header (%zu bytes of %llu)", count,
                      (unsigned long long)length + sizeof length));
    TRY(base_cursor_skip(&c, (size_t)length, &text));
    if (length == 0 || text[0] != '{')
        TRY(base_fail(BASE_ERR_DATA, "not a safetensors file: its header is not a JSON object"));
    TRY(base_prefix(base_json_parse((const char *)text, (size_t)length, &f->header), "header"));
    TRY(parse_tensors(f, c.at, base_cursor_left(&c)));
out:
    return st;
}

base_status store_parse(const void *bytes, size_t count, struct store_file **file_p)
{
    base_status st = BASE_OK;
    struct store_file *f = base_calloc(1, sizeof *f);

    *file_p = NULL;
    TRY(parse_header(f, bytes, count));
    *file_p = f;
    f = NULL;
out:
    store_close(f);
    return st;
}

base_status store_open(const char *path, struct store_file **file_p)
{
    base_status st = BASE_OK;
    struct store_file *f = base_calloc(1, sizeof *f);

    *file_p = NULL;
    TRY(base_map_open(path, &f->map));
    TRY(base_prefix(parse_header(f, f->map.bytes, f->map.count), "%s", path));
    *file_p = f;
    f = NULL;
out:
    store_close(f);
    return st;
}

void store_close(struct store_file *file)
{
    if (file == NULL)
        return;
    base_free(file->tensors);
    json_decref(file->header);
    base_map_close(&file->map);
    base_free(file);
}

size_t store_count(const struct store_file *file)
{
    return file->count;
}

const struct store_tensor *store_at(const struct store_file *file, size_t index)
{
    return &file->tensors[index];
}

const struct store_tensor *store_find(const struct store_file *file, const char *name)
{
    for (size_t i = 0; i < file->count; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    return NULL;
}

bool store_is_float(enum store_type type)
{
    return type == STORE_F32 || type == STORE_F16 || type == STORE_BF16;
}

static float float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* One sign, five bits of exponent (bias 15), ten of fraction. */
static float float_of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half >> 15) << 31, exponent = half >> 10 & 31,
             fraction = half & 1023;

    if (exponent == 31) /* infinite or not a number */
        return float_of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent != 0)
        return float_of_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
    return (sign != 0 ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f; /* subnormal */
}

void store_read_floats(const struct store_tensor *t, float *floats)
{
    const uint8_t *bytes = t->data; /* maybe unaligned */

    if (t->type == STORE_F32) {
        memcpy(floats, bytes, t->bytes);
        return;
    }
    for (size_t i = 0; i < t->bytes / sizeof(uint16_t); i++) {
        uint16_t half;

        memcpy(&half, bytes + i * sizeof half, sizeof half);
        floats[i] =
            t->type == STORE_F16 ? float_of_half(half) : float_of_bits((uint32_t)half << 16);
    }
}
