/* SPDX-License-Identifier: MIT
 *
 * manifest.json of a checkpoint: {"digest":"HEX", … "files":{NAME:{"bytes","sha256"}}, "schema",
 * "step", and what train/ adds}. HEX is the SHA-256 of all bytes of the text after HEX itself
 * (tail -c +76 manifest.json | sha256sum), so every byte is covered and nothing is parsed before
 * it is checked. Text only: the files themselves are compared in checkpoint.c. Keeps no state.
 */
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/checkpoint.h"
#include "store/store_private.h"

static const char PREFIX[] = "{\"digest\":\"";
enum { PREFIX_LENGTH = sizeof PREFIX - 1, DIGEST_END = PREFIX_LENGTH + BASE_SHA256_HEX - 1 };

static bool is_digest(const char *text)
{
    return strlen(text) == BASE_SHA256_HEX - 1 &&
           strspn(text, "0123456789abcdef") == BASE_SHA256_HEX - 1;
}

/* True for the name of a file beside the manifest, false for a path that leads elsewhere. */
static bool is_file_name(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL &&
           strcmp(name, STORE_MANIFEST) != 0;
}

static base_status check_digest_of(const char *text, size_t count)
{
    char hex[BASE_SHA256_HEX];

    if (count < DIGEST_END || memcmp(text, PREFIX, PREFIX_LENGTH) != 0)
        return base_fail(BASE_ERR_DATA, "it does not begin with its digest");
    base_sha256(text + DIGEST_END, count - DIGEST_END, hex);
    if (memcmp(text + PREFIX_LENGTH, hex, BASE_SHA256_HEX - 1) != 0)
        return base_fail(BASE_ERR_DATA, "it does not match its digest");
    return BASE_OK;
}

static base_status check_file_entry(const char *name, const json_t *entry)
{
    base_status st = BASE_OK;
    const char *digest;
    int64_t bytes;

    if (!is_file_name(name))
        TRY(base_fail(BASE_ERR_DATA, "not a plain file name"));
    if (!json_is_object(entry))
        TRY(base_fail(BASE_ERR_DATA, "an object expected"));
    TRY(base_json_integer(entry, "bytes", &bytes));
    TRY(base_json_string(entry, "sha256", &digest));
    if (bytes < 0 || !is_digest(digest))
        TRY(base_fail(BASE_ERR_DATA, "\"bytes\" or \"sha256\" is malformed"));
out:
    return base_prefix(st, "\"files\", '%s'", name);
}

static base_status check_fields(const json_t *manifest)
{
    base_status st = BASE_OK;
    int64_t schema, step;
    const char *name;
    json_t *files, *entry;

    if (!json_is_object(manifest))
        TRY(base_fail(BASE_ERR_DATA, "a JSON object expected"));
    TRY(base_json_integer(manifest, "schema", &schema));
    if (schema != STORE_SCHEMA)
        TRY(base_fail(BASE_ERR_DATA, "schema %lld is unknown, this program reads %d",
                      (long long)schema, STORE_SCHEMA));
    TRY(base_json_integer(manifest, "step", &step));
    if (step < 0)
        TRY(base_fail(BASE_ERR_DATA, "\"step\" is negative"));
    TRY(base_json_object(manifest, "files", &files));
    json_object_foreach(files, name, entry) TRY(check_file_entry(name, entry));
out:
    return st;
}

base_status store_manifest_parse(const char *text, size_t count, bool check_digest,
                                 json_t **manifest_p)
{
    base_status st = BASE_OK;
    json_t *manifest = NULL;

    *manifest_p = NULL;
    if (check_digest)
        TRY(check_digest_of(text, count));
    TRY(base_json_parse(text, count, &manifest));
    TRY(check_fields(manifest));
    *manifest_p = manifest;
    manifest = NULL;
out:
    json_decref(manifest);
    return st;
}

base_status store_manifest_text(const json_t *manifest, char **text_p, size_t *count_p)
{
    base_status st = BASE_OK;
    char *dump = json_dumps(manifest, JSON_INDENT(1) | JSON_SORT_KEYS);
    struct base_str text = {0}, tail = {0};
    json_t *again = NULL;
    char hex[BASE_SHA256_HEX];

    *text_p = NULL;
    *count_p = 0;
    if (dump == NULL)
        TRY(base_fail(BASE_ERR_INTERNAL, "the manifest cannot be written as JSON"));
    base_str_add(&tail, "\",%s\n", dump + 1); /* without the opening brace */
    base_sha256(tail.text, tail.length, hex);
    base_str_add(&text, "%s%s%s", PREFIX, hex, tail.text);
    if (text.length > STORE_MAX_MANIFEST)
        TRY(base_fail(BASE_ERR_INTERNAL, "the manifest is too large (%zu bytes)", text.length));
    TRY(base_prefix(store_manifest_parse(text.text, text.length, true, &again),
                    "the manifest would not be read back"));
    *count_p = text.length;
    *text_p = base_str_take(&text);
out:
    json_decref(again);
    base_free(dump);
    base_str_fini(&tail);
    base_str_fini(&text);
    return st;
}
