/* SPDX-License-Identifier: MIT
 *
 * safetensors: what is written is read back; every malformed file is refused with a message that
 * names what is wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "store/safetensors.h"

static char folder[] = "/tmp/paceline-safetensors-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    return base_remove_tree(folder) != BASE_OK;
}

/* A file in memory: header text, then `data` bytes 0, 1, 2, … */
static char *image(const char *header, size_t data, size_t *count_p)
{
    size_t length = strlen(header);
    char *bytes = base_calloc(8 + length + data, 1);

    for (size_t i = 0; i < 8; i++)
        bytes[i] = (char)(length >> 8 * i);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data; i++)
        bytes[8 + length + i] = (char)i;
    *count_p = 8 + length + data;
    return bytes;
}

static const struct store_tensor three[] = {
    {.name = "conv.weight", .type = STORE_F32, .rank = 4, .shape = {2, 1, 3, 3}},
    {.name = "bn.num_batches_tracked", .type = STORE_I64, .rank = 0},
    {.name = "odd \"name\" é", .type = STORE_U8, .rank = 1, .shape = {5}},
};
enum { THREE_BYTES = 72 + 8 + 5 };

static void write_three(const char *path, size_t piece)
{
    struct store_writer *w;
    uint8_t bytes[THREE_BYTES];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + 1);
    assert_int_equal(store_create(path, three, 3, &w), BASE_OK);
    for (size_t at = 0; at < sizeof bytes; at += piece)
        assert_int_equal(
            store_write(w, bytes + at, at + piece > sizeof bytes ? sizeof bytes - at : piece),
            BASE_OK);
    assert_int_equal(store_finish(w), BASE_OK);
}

static void reads_what_it_wrote(void **state)
{
    char *path = base_format("%s/three", folder), *text;
    struct store_file *f;
    const struct store_tensor *t;
    size_t count;

    (void)state;
    for (size_t piece = 1; piece <= THREE_BYTES; piece += 28) {
        write_three(path, piece);
        assert_int_equal(store_open(path, &f), BASE_OK);
        assert_int_equal(store_count(f), 3);
        for (size_t i = 0, at = 0; i < 3; i++) {
            t = store_at(f, i);
            assert_string_equal(t->name, three[i].name);
            assert_ptr_equal(store_find(f, three[i].name), t);
            assert_int_equal(t->type, three[i].type);
            assert_int_equal(t->rank, three[i].rank);
            assert_memory_equal(t->shape, three[i].shape, sizeof t->shape);
            for (size_t k = 0; k < t->bytes; k++, at++)
                assert_int_equal(((const uint8_t *)t->data)[k], (uint8_t)(at * 7 + 1));
        }
        assert_int_equal((uintptr_t)store_at(f, 0)->data % 64, 0); /* the map is page-aligned */
        assert_null(store_find(f, "absent"));
        store_close(f);
    }
    /* Every shorter file is refused, whether header or data is cut. */
    assert_int_equal(base_file_read(path, 4096, &text, &count), BASE_OK);
    for (size_t cut = 0; cut < count; cut++) {
        char *part = base_calloc(cut, 1); /* exactly this long: a read past it is caught */

        memcpy(part, text, cut);
        assert_int_equal(store_parse(part, cut, &f), BASE_ERR_DATA);
        assert_null(f);
        base_free(part);
    }
    base_free(text);
    base_free(path);
}

static void accepts_valid_headers(void **state)
{
    static const struct {
        const char *header;
        size_t data, tensors;
    } good[] = {
        {"{}", 0, 0},
        {"{}     ", 0, 0},
        {"{\"__metadata__\":{\"a\":\"b\"}}", 0, 0},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, 1},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[0,0]}}", 0, 1},
        /* names in another order than bytes; an empty tensor between two others */
        {"{\"b\":{\"dtype\":\"U32\",\"shape\":[1],\"data_offsets\":[2,6]},"
         "\"e\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[2,2]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2],\"more\":1}}",
         6, 3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        size_t count;
        char *bytes = image(good[i].header, good[i].data, &count);
        struct store_file *f;

        assert_int_equal(store_parse(bytes, count, &f), BASE_OK);
        assert_int_equal(store_count(f), good[i].tensors);
        if (good[i].tensors == 3) {
            assert_string_equal(store_at(f, 0)->name, "a");
            assert_string_equal(store_at(f, 1)->name, "e");
            assert_memory_equal(store_find(f, "b")->data, "\2\3\4\5", 4);
        }
        store_close(f);
        base_free(bytes);
    }
}

#define ONE(fields) "{\"w\":{" fields "}}"
#define TENSOR(name, type, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void refuses_malformed_headers(void **state)
{
    static const struct {
        const char *header;
        size_t data;
        const char *says;
    } bad[] = {
        {"", 4, "not a JSON object"},
        {" {}", 0, "not a JSON object"},
        {"[]", 0, "not a JSON object"},
        {"{}x", 0, "not valid JSON"},
        {"{", 0, "not valid JSON"},
        {"{}", 1, "1 bytes after the last tensor"},
        {"{\"w\":3}", 0, "tensor 'w'"},
        {ONE("\"shape\":[1],\"data_offsets\":[0,4]"), 4, "\"dtype\" is missing"},
        {ONE("\"dtype\":\"F32\",\"data_offsets\":[0,4]"), 4, "\"shape\" is missing"},
        {ONE("\"dtype\":\"F32\",\"shape\":[1]"), 4, "\"data_offsets\" is missing"},
        {"{" TENSOR("w", "F64", "[2]", "[0,16]") "}", 16, "type F64 is not supported"},
        {"{" TENSOR("w", "F32", "[1]", "[0]") "}", 4, "[begin, end]"},
        {"{" TENSOR("w", "F32", "[1]", "[0,4,8]") "}", 4, "[begin, end]"},
        {"{" TENSOR("w", "F32", "[1]", "[0,5]") "}", 4, "outside the 4 bytes"},
        {"{" TENSOR("w", "F32", "[1]", "[4,0]") "}", 4, "outside the 4 bytes"},
        {"{" TENSOR("w", "F32", "[1]", "[-4,0]") "}", 4, "whole numbers"},
        {"{" TENSOR("w", "F32", "[1]", "[0,4.0]") "}", 4, "whole numbers"},
        {"{" TENSOR("w", "F32", "[1]", "[0,9223372036854775807]") "}", 4, "outside the 4 bytes"},
        {"{" TENSOR("w", "F32", "[1]", "[0,99999999999999999999]") "}", 4, "too big integer"},
        {"{" TENSOR("w", "F32", "[-1]", "[0,4]") "}", 4, "whole numbers"},
        {"{" TENSOR("w", "F32", "[2]", "[0,4]") "}", 4, "its shape needs 8"},
        {"{" TENSOR("w", "F32", "[0]", "[0,4]") "}", 4, "its shape needs 0"},
        {"{" TENSOR("w", "F32", "[4294967296,4294967296]", "[0,0]") "}", 0, "too large"},
        {"{" TENSOR("w", "U8", "[9223372036854775807,2,2]", "[0,4]") "}", 4, "too large"},
        {"{" TENSOR("w", "U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1, "9 dimensions"},
        {"{" TENSOR("a", "U8", "[2]", "[0,2]") "," TENSOR("b", "U8", "[2]", "[1,3]") "}", 3,
         "tensor 'b' overlaps"},
        {"{" TENSOR("a", "U8", "[2]", "[0,2]") "," TENSOR("b", "U8", "[2]", "[0,2]") "}", 2,
         "overlaps"},
        {"{" TENSOR("a", "U8", "[3]", "[0,3]") "," TENSOR("b", "U8", "[0]", "[1,1]") "}", 3,
         "overlaps"},
        {"{" TENSOR("a", "U8", "[1]", "[0,1]") "," TENSOR("b", "U8", "[1]", "[2,3]") "}", 3,
         "tensor 'b' has unused bytes"},
        {"{" TENSOR("a", "U8", "[1]", "[1,2]") "}", 2, "tensor 'a' has unused bytes"},
        {"{" TENSOR("a", "U8", "[1]", "[0,1]") "," TENSOR("a", "U8", "[1]", "[1,2]") "}", 2,
         "duplicate"},
        {"{" TENSOR("a", "U8", "[1]", "[0,1]") "," TENSOR("\\u0061", "U8", "[1]", "[1,2]") "}", 2,
         "duplicate"},
        {"{" TENSOR("a", "U8", "[1]", "[0,1]") "," TENSOR("a\\u0000", "U8", "[1]", "[1,2]") "}", 2,
         "not valid JSON"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t count;
        char *bytes = image(bad[i].header, bad[i].data, &count);
        struct store_file *f;

        if (store_parse(bytes, count, &f) != BASE_ERR_DATA ||
            strstr(base_message(), bad[i].says) == NULL)
            fail_msg("%s: '%s' lacks '%s'", bad[i].header, base_message(), bad[i].says);
        assert_null(f);
        base_free(bytes);
    }
}

static void refuses_absurd_lengths(void **state)
{
    static const uint64_t lengths[] = {3, 4096, (64 << 20) + 1, INT64_MAX, UINT64_MAX};
    struct store_file *f;
    char bytes[10] = {0, 0, 0, 0, 0, 0, 0, 0, '{', '}'};

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memcpy(bytes, &lengths[i], 8);
        assert_int_equal(store_parse(bytes, sizeof bytes, &f), BASE_ERR_DATA);
    }
    assert_int_equal(store_parse(NULL, 0, &f), BASE_ERR_DATA);
    assert_int_equal(store_open("/nonexistent/file", &f), BASE_ERR_IO);
    assert_non_null(strstr(base_message(), "/nonexistent/file"));
    assert_int_equal(store_open("/dev/null", &f), BASE_ERR_IO);
}

static void open_names_the_file(void **state)
{
    char *path = base_format("%s/empty", folder);
    struct store_file *f;

    (void)state;
    assert_int_equal(base_file_replace(path, "", 0), BASE_OK);
    assert_int_equal(store_open(path, &f), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), path));
    base_free(path);
}

static void writer_refuses_nonsense(void **state)
{
    struct store_tensor bad[] = {
        {.name = "__metadata__", .type = STORE_U8, .rank = 1, .shape = {1}},
        {.name = "\xff", .type = STORE_U8, .rank = 1, .shape = {1}},
        {.name = "deep", .type = STORE_U8, .rank = STORE_MAX_RANK + 1},
        {.name = "huge", .type = STORE_F32, .rank = 2, .shape = {1ull << 32, 1ull << 32}},
    };
    struct store_tensor twice[] = {three[0], three[0]};
    char *path = base_format("%s/nonsense", folder);
    struct store_writer *w;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_not_equal(store_create(path, &bad[i], 1, &w), BASE_OK);
        assert_null(w);
    }
    assert_int_not_equal(store_create(path, twice, 2, &w), BASE_OK);
    assert_false(base_exists(path));
    base_free(path);
}

static void writer_counts_bytes(void **state)
{
    char *path = base_format("%s/counted", folder);
    struct store_writer *w;
    char bytes[THREE_BYTES + 1] = {0};

    (void)state;
    assert_int_equal(store_create(path, three, 3, &w), BASE_OK);
    assert_int_equal(store_write(w, bytes, THREE_BYTES + 1), BASE_ERR_INTERNAL);
    assert_int_equal(store_write(w, bytes, THREE_BYTES - 1), BASE_OK);
    assert_int_equal(store_finish(w), BASE_ERR_INTERNAL);
    assert_false(base_exists(path));
    assert_int_equal(store_create(path, three, 3, &w), BASE_OK);
    store_abandon(w);
    store_abandon(NULL);
    assert_false(base_exists(path));
    base_free(path);
}

/* The path is a link to /dev/full, so that abandoning removes the link and not the device. */
static void full_disk_is_named(void **state)
{
    char *path = base_format("%s/full", folder);
    struct store_tensor big = {.name = "w", .type = STORE_U8, .rank = 1, .shape = {1 << 20}};
    void *bytes = base_calloc(1, 1 << 20);
    struct store_writer *w;

    (void)state;
    for (int at_write = 0; at_write < 2; at_write++) {
        big.shape[0] = at_write ? 1 << 20 : 1;
        assert_int_equal(symlink("/dev/full", path), 0);
        assert_int_equal(store_create(path, &big, 1, &w), BASE_OK);
        if (at_write) {
            assert_int_equal(store_write(w, bytes, 1 << 20), BASE_ERR_IO);
            store_abandon(w);
        } else {
            assert_int_equal(store_write(w, bytes, 1), BASE_OK);
            assert_int_equal(store_finish(w), BASE_ERR_IO);
        }
        assert_non_null(strstr(base_message(), path));
        assert_non_null(strstr(base_message(), "No space left"));
        assert_non_null(strstr(base_message(), "free some space"));
        assert_int_not_equal(access(path, F_OK), 0);
    }
    assert_int_equal(store_create("/nonexistent/file", &big, 1, &w), BASE_ERR_IO);
    base_free(bytes);
    base_free(path);
}

static void type_sizes(void **state)
{
    (void)state;
    assert_int_equal(store_type_size(STORE_F32), 4);
    assert_int_equal(store_type_size(STORE_I64), 8);
    assert_int_equal(store_type_size(STORE_U32), 4);
    assert_int_equal(store_type_size(STORE_U8), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_it_wrote),
        cmocka_unit_test(accepts_valid_headers),
        cmocka_unit_test(refuses_malformed_headers),
        cmocka_unit_test(refuses_absurd_lengths),
        cmocka_unit_test(open_names_the_file),
        cmocka_unit_test(writer_refuses_nonsense),
        cmocka_unit_test(writer_counts_bytes),
        cmocka_unit_test(full_disk_is_named),
        cmocka_unit_test(type_sizes),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
