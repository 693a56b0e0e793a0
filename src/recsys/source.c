/* SPDX-License-Identifier: MIT
 *
 * Where ratings come from: a file, or a folder that holds files of a known format. The beginning of
 * the first file says which format it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/registry.h"
#include "recsys/recsys_private.h"

enum { HEAD = 64 << 10, FORMAT_VERSION = 1, SAMPLE_LINES = 20 };

/* ---- what formats ask of the first lines ---- */

struct recsys_field recsys_first_line(const char *text, size_t count)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8 */
    const char *end;
    size_t length;

    if (count >= 3 && memcmp(text, mark, 3) == 0) {
        text += 3;
        count -= 3;
    }
    end = count > 0 ? memchr(text, '\n', count) : NULL;
    length = end != NULL ? (size_t)(end - text) : count;
    if (length > 0 && text[length - 1] == '\r')
        length--;
    return (struct recsys_field){text, length};
}

bool recsys_fits_line(const struct recsys_layout *layout, struct recsys_field line)
{
    struct recsys_field fields[RECSYS_ROLES] = {0};
    bool has[RECSYS_ROLES + 1] = {0};
    float value;
    uint32_t seconds;

    for (int i = 0; i < layout->columns; i++)
        has[layout->role[i]] = true;
    return recsys_cut(layout, line.at, line.length, fields) == layout->columns &&
           fields[RECSYS_USER].length > 0 &&
           (!has[RECSYS_ITEM] || fields[RECSYS_ITEM].length > 0) &&
           (!has[RECSYS_RATING] || recsys_real(fields[RECSYS_RATING], &value)) &&
           (!has[RECSYS_TIME] || recsys_time(fields[RECSYS_TIME], &seconds));
}

/* The most lines of the beginning must fit: some may be bad. */
bool recsys_fits(const struct recsys_layout *layout, const char *text, size_t count)
{
    int lines = 0, good = 0;
    const char *end = text + count, *at = text;

    for (bool first = layout->titled; at < end && lines < SAMPLE_LINES; first = false) {
        struct recsys_field line = recsys_first_line(at, (size_t)(end - at));
        const char *stop = memchr(at, '\n', (size_t)(end - at));

        if (stop == NULL && at > text && count == HEAD)
            break; /* the line is cut off */
        at = stop != NULL ? stop + 1 : end;
        if (first || line.length == 0)
            continue;
        lines++;
        good += recsys_fits_line(layout, line);
    }
    return good > 0 && 2 * good > lines;
}

/* ---- files ---- */

static base_status add_file(const char *path, struct recsys_source *s, struct base_str *identity)
{
    base_status st = BASE_OK;
    struct stat about;
    const char *slash = strrchr(path, '/');

    if (stat(path, &about) != 0)
        TRY(base_fail(BASE_ERR_IO, "cannot open %s: %m", path));
    if (!S_ISREG(about.st_mode))
        TRY(base_fail(BASE_ERR_IO, "%s is not a file", path));
    if (s->file_count == 0)
        s->owner = about.st_uid;
    s->files = base_realloc(s->files, s->file_count + 1, sizeof *s->files);
    s->files[s->file_count++] = (struct recsys_file){base_strdup(path), (uint64_t)about.st_size};
    base_str_add(identity, "%s %lld %lld.%09ld\n", slash != NULL ? slash + 1 : path,
                 (long long)about.st_size, (long long)about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
out:
    return st;
}

static base_status add_matching(const char *folder, const char *pattern, struct recsys_source *s,
                                struct base_str *identity)
{
    base_status st = BASE_OK;
    char **names = NULL;
    size_t count = 0;

    TRY(base_list_dir(folder, &names, &count));
    for (size_t i = 0; i < count && st == BASE_OK; i++) {
        char *path = base_format("%s/%s", folder, names[i]);

        if (fnmatch(pattern, names[i], 0) == 0)
            st = add_file(path, s, identity);
        base_free(path);
    }
out:
    base_names_free(names, count);
    return st;
}

/* The files of the first format that has any in the folder or, as Netflix' are, in training_set. */
static base_status find_in_folder(const char *folder, struct recsys_source *s,
                                  struct base_str *identity)
{
    base_status st = BASE_OK;
    char *inner = base_format("%s/training_set", folder);
    const char *places[] = {folder, base_is_dir(inner) ? inner : NULL};

    for (size_t p = 0; p < 2 && places[p] != NULL && s->file_count == 0; p++)
        for (size_t f = 0; f < recsys_format_count && s->file_count == 0; f++)
            for (const char *const *pattern = recsys_format_registry[f]->files;
                 pattern != NULL && *pattern != NULL && s->file_count == 0; pattern++)
                TRY(add_matching(places[p], *pattern, s, identity));
    if (s->file_count == 0)
        TRY(base_fail(BASE_ERR_DATA,
                      "no ratings in the folder %s: expected ratings.csv, ratings.dat, u.data, "
                      "combined_data_*.txt or mv_*.txt",
                      folder));
out:
    base_free(inner);
    return st;
}

static base_status read_head(const char *path, char **text_p, size_t *count_p)
{
    base_status st = BASE_OK;
    char *text = base_calloc(HEAD + 1, 1);
    size_t size = 0;
    ssize_t got;
    int fd = -1;

    *text_p = text;
    *count_p = 0;
    TRY(base_open_regular(path, &fd, &size));
    got = pread(fd, text, HEAD, 0);
    if (got < 0)
        TRY(base_fail(BASE_ERR_IO, "cannot read %s: %m", path));
    *count_p = (size_t)got;
out:
    if (fd >= 0)
        close(fd);
    return st;
}

static bool recognise(const char *text, size_t count, struct recsys_source *s)
{
    for (size_t i = 0; i < recsys_format_count; i++) {
        s->format = recsys_format_registry[i];
        if (s->format->recognise != NULL && s->format->recognise(text, count, &s->layout))
            return true;
    }
    s->format = NULL;
    return false;
}

static base_status choose_format(const struct recsys_options *options, struct recsys_source *s)
{
    base_status st = BASE_OK;
    const char *path = s->files[0].path;
    char *text = NULL;
    size_t count = 0;

    TRY(read_head(path, &text, &count));
    if (count == 0)
        TRY(base_fail(BASE_ERR_DATA, "%s is empty", path));
    if (options->columns != NULL) {
        TRY(base_prefix(
            recsys_columns(options->columns, options->separator, text, count, &s->layout), "%s",
            path));
        s->format = base_registry_get("columns", recsys_format_registry, recsys_format_count);
    } else if (!recognise(text, count, s)) {
        TRY(base_fail(BASE_ERR_DATA,
                      "%s is in no known format of ratings; say what its columns are, as in: "
                      "--columns user,item,rating,time",
                      path));
    }
out:
    base_free(text);
    return st;
}

static void identify(struct recsys_source *s, struct base_str *identity)
{
    const struct recsys_layout *l = &s->layout;

    base_str_add(identity, "%d %s '%s' %d %d\n", FORMAT_VERSION, s->format->name, l->separator,
                 l->titled, l->headings);
    for (int i = 0; i < l->columns; i++)
        base_str_add(identity, "%d ", l->role[i]);
    base_sha256(identity->text, identity->length, s->identity);
}

/* Absolute, since the cache's name follows from it. */
static base_status find_place(const char *path, struct recsys_source *s)
{
    base_status st = BASE_OK;
    char *file = realpath(s->files[0].path, NULL);

    s->place = realpath(path, NULL);
    if (s->place == NULL || file == NULL)
        TRY(base_fail(BASE_ERR_IO, "cannot open %s: %m", path));
    s->beside = s->file_count == 1 ? base_format("%s.paceline", file)
                                   : base_format("%s/ratings.paceline", s->place);
out:
    free(file);
    return st;
}

base_status recsys_source_open(const char *path, const struct recsys_options *options,
                               struct recsys_source *s)
{
    base_status st = BASE_OK;
    struct base_str identity = {0};

    *s = (struct recsys_source){0};
    if (base_is_dir(path))
        TRY(find_in_folder(path, s, &identity));
    else
        TRY(add_file(path, s, &identity));
    TRY(choose_format(options, s));
    identify(s, &identity);
    TRY(find_place(path, s));
out:
    base_str_fini(&identity);
    return st;
}

void recsys_source_close(struct recsys_source *s)
{
    for (size_t i = 0; i < s->file_count; i++)
        base_free(s->files[i].path);
    base_free(s->files);
    base_free(s->beside);
    base_free(s->place);
    *s = (struct recsys_source){0};
}

bool recsys_is_ratings(const char *path)
{
    struct recsys_source source;
    base_status st = recsys_source_open(path, &(struct recsys_options){0}, &source);

    recsys_source_close(&source);
    return st == BASE_OK;
}
