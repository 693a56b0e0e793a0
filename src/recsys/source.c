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

enum { HEAD = 64 << 10, BLOCK = 1 << 20, FORMAT_VERSION = 1, SAMPLE_LINES = 20 };

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

bool recsys_has_role(const struct recsys_layout *layout, enum recsys_role role)
{
    return memchr(layout->role, (int)role, (size_t)layout->columns) != NULL;
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
    s->files[s->file_count++] =
        (struct recsys_file){.path = base_strdup(path), .size = (uint64_t)about.st_size};
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

/* The files of the first format that has any in the folder or, as Netflix' are, in training_set.
 */
static base_status find_in_folder(const char *folder, struct recsys_source *s,
                                  struct base_str *identity)
{
    base_status st = BASE_OK;
    char *inner = base_format("%s/training_set", folder);
    const char *places[] = {folder, base_is_dir(inner) ? inner : NULL};
    const size_t before = s->file_count;

    for (size_t p = 0; p < 2 && places[p] != NULL && s->file_count == before; p++)
        for (size_t f = 0; f < recsys_format_count && s->file_count == before; f++)
            for (const char *const *pattern = recsys_format_registry[f]->files;
                 pattern != NULL && *pattern != NULL && s->file_count == before; pattern++)
                TRY(add_matching(places[p], *pattern, s, identity));
    if (s->file_count == before)
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
    size_t size = 0;
    ssize_t got;
    int fd = -1;

    *text_p = NULL;
    *count_p = 0;
    TRY(base_open_regular(path, &fd, &size));
    size = size < HEAD ? size : HEAD;
    *text_p = base_calloc(size + 1, 1);
    got = pread(fd, *text_p, size, 0);
    if (got < 0)
        TRY(base_fail(BASE_ERR_IO, "cannot read %s: %m", path));
    *count_p = (size_t)got;
out:
    if (fd >= 0)
        close(fd);
    return st;
}

static const struct recsys_format *recognise(const char *text, size_t count,
                                             struct recsys_layout *layout)
{
    for (size_t i = 0; i < recsys_format_count; i++) {
        const struct recsys_format *format = recsys_format_registry[i];

        if (format->recognise != NULL && format->recognise(text, count, layout))
            return format;
    }
    return NULL;
}

static base_status choose_format(const char *path, const struct recsys_options *options,
                                 const struct recsys_format **format_p,
                                 struct recsys_layout *layout)
{
    base_status st = BASE_OK;
    char *text = NULL;
    size_t count = 0;

    TRY(read_head(path, &text, &count));
    if (count == 0)
        TRY(base_fail(BASE_ERR_DATA, "%s is empty", path));
    if (options->columns != NULL) {
        TRY(base_prefix(recsys_columns(options->columns, options->separator, text, count, layout),
                        "%s", path));
        *format_p = base_registry_get("columns", recsys_format_registry, recsys_format_count);
    } else if ((*format_p = recognise(text, count, layout)) == NULL) {
        TRY(base_fail(BASE_ERR_DATA,
                      "%s is in no known format of ratings; say what its columns are, as in: "
                      "--columns user,item,rating,time",
                      path));
    }
out:
    base_free(text);
    return st;
}

static void identify(const struct recsys_format *format, const struct recsys_layout *l,
                     struct base_str *identity)
{
    base_str_add(identity, "%d %s '%s' %d %d\n", FORMAT_VERSION, format->name, l->separator,
                 l->titled, l->headings);
    for (int i = 0; i < l->columns; i++)
        base_str_add(identity, "%d ", l->role[i]);
}

/* Ratings that are added may be written in another way, but must say the same things. */
static base_status check_alike(const struct recsys_source *s, const struct recsys_file *added)
{
    static const struct {
        enum recsys_role role;
        const char *what;
    } fields[] = {{RECSYS_TIME, "times"}, {RECSYS_RATING, "ratings beside users and items"}};
    const struct recsys_file *first = &s->files[0];

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const bool has = recsys_has_role(&first->layout, fields[i].role);

        if (has != recsys_has_role(&added->layout, fields[i].role))
            return base_fail(BASE_ERR_DATA,
                             "%s has %s, and %s has none; both must have them, or "
                             "neither",
                             has ? first->path : added->path, fields[i].what,
                             has ? added->path : first->path);
    }
    return BASE_OK;
}

/* The files that a path stands for, after those that are there. */
static base_status add_path(const char *path, const struct recsys_options *options,
                            struct recsys_source *s, struct base_str *identity)
{
    base_status st = BASE_OK;
    const size_t before = s->file_count;
    const struct recsys_format *format = NULL;
    struct recsys_layout layout = {0};

    TRY(base_is_dir(path) ? find_in_folder(path, s, identity) : add_file(path, s, identity));
    TRY(choose_format(s->files[before].path, options, &format, &layout));
    identify(format, &layout, identity);
    for (size_t i = before; i < s->file_count; i++)
        s->files[i].layout = layout;
    if (before == 0)
        s->format = format;
    else
        TRY(check_alike(s, &s->files[before]));
out:
    return st;
}

/* Absolute, since the cache's name follows from it; `free`. */
static base_status absolute(const char *path, char **absolute_p)
{
    *absolute_p = realpath(path, NULL);
    return *absolute_p != NULL ? BASE_OK : base_fail(BASE_ERR_IO, "cannot open %s: %m", path);
}

/* The cache is beside the only file, or in the folder; with more ratings it is beside the last that
 * were added, and its name tells what they were added to. */
static base_status find_place(const char *path, const struct recsys_options *options,
                              struct recsys_source *s)
{
    base_status st = BASE_OK;
    char *file = NULL, hex[BASE_SHA256_HEX];
    struct base_str all = {0};

    TRY(absolute(path, &s->place));
    TRY(absolute(s->files[0].path, &file));
    base_str_add(&all, "%s", s->place);
    for (int i = 0; i < options->added_count; i++) {
        free(file);
        TRY(absolute(options->added[i], &file));
        base_str_add(&all, "\n%s", file);
    }
    base_sha256(all.text, all.length, hex);
    if (options->added_count > 0)
        s->beside =
            base_format("%s%s.%.8s.paceline", file, base_is_dir(file) ? "/ratings" : "", hex);
    else
        s->beside = s->file_count == 1 ? base_format("%s.paceline", file)
                                       : base_format("%s/ratings.paceline", s->place);
    s->all = base_str_take(&all);
out:
    base_str_fini(&all);
    free(file);
    return st;
}

base_status recsys_source_open(const char *path, const struct recsys_options *options,
                               struct recsys_source *s)
{
    base_status st = BASE_OK;
    struct base_str identity = {0};

    *s = (struct recsys_source){.block = options->block > 0 ? options->block : BLOCK};
    TRY(add_path(path, options, s, &identity));
    for (int i = 0; i < options->added_count; i++)
        TRY(add_path(options->added[i], options, s, &identity));
    base_sha256(identity.text, identity.length, s->identity);
    if (options->no_cache) /* a file that has no name any more will do, too */
        s->place = base_strdup(path);
    else
        TRY(find_place(path, options, s));
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
    free(s->place);
    base_free(s->all);
    *s = (struct recsys_source){0};
}

bool recsys_is_ratings(const char *path)
{
    struct recsys_source source;
    base_status st = recsys_source_open(path, &(struct recsys_options){0}, &source);

    recsys_source_close(&source);
    return st == BASE_OK;
}
