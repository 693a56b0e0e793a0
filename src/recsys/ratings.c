/* SPDX-License-Identifier: MIT
 *
 * Opening ratings: the cache where it is current, else the text. The cache lies beside the text
 * or, where that folder cannot be written to, in the cache folder; where that cannot be written to
 * either it is a file in memory, and the next start reads the text again.
 *
 * Processes that open one text at once: the first has a lock on it while it reads, the others wait
 * and then find the cache. Where there are no locks, or the first takes too long, each writes a
 * cache of its own, and the last to finish replaces those of the others; a map of a replaced file
 * stays whole.
 */
#include "recsys/ratings.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/thread.h"
#include "recsys/recsys_private.h"

int recsys_threads(int wanted, uint64_t ratings)
{
    enum { PER_THREAD = 20000 }; /* fewer are done before another thread has started */
    cpu_set_t set;
    uint64_t useful = ratings / PER_THREAD + 1;

    if (wanted <= 0)
        wanted = base_cpus(sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1);
    return useful < (uint64_t)wanted ? (int)useful : wanted;
}

/* ---- places ---- */

enum { PLACES = 2 };

/* Beside the text, and in the cache folder under the digest of its paths; base_free each. */
static void find_places(const struct recsys_source *source, char *places[PLACES])
{
    char hex[BASE_SHA256_HEX], *folder = base_cache_dir();

    base_sha256(source->all, strlen(source->all), hex);
    places[0] = base_strdup(source->beside);
    places[1] = folder != NULL ? base_format("%s/ratings/%.32s.paceline", folder, hex) : NULL;
    base_free(folder);
}

/* `tells`: of a cache that is there and is of no use. One that is damaged or old will be replaced.
 */
static bool open_cached(char *const places[PLACES], const struct recsys_source *source, bool tells,
                        struct base_team *team, struct recsys_ratings *r)
{
    for (int i = 0; i < PLACES; i++) {
        base_status st = places[i] != NULL && base_exists(places[i])
                             ? recsys_cache_open(places[i], source, team, r)
                             : BASE_ERR_DATA;

        if (st == BASE_OK) {
            r->cache = base_strdup(places[i]);
            return true;
        }
        if (st == BASE_ERR_IO && tells)
            base_info("a cache is passed over: %s", base_message());
    }
    return false;
}

/* ---- from text ---- */

/* The file that `path` names (fd: for writing) has the ratings when this returns. */
static base_status build(const struct recsys_source *source, int threads, struct base_team *team,
                         int fd, const char *path)
{
    base_status st = BASE_OK;
    struct recsys_text text = {0};
    struct recsys_header *header = base_calloc(1, sizeof *header);

    TRY(recsys_text_read(source, threads, team, &text));
    TRY(recsys_group(&text, team, fd, path, header));
    recsys_text_close(&text);
    snprintf(header->format, sizeof header->format, "%s", source->format->name);
    memcpy(header->identity, source->identity, sizeof header->identity);
    TRY(recsys_cache_seal(fd, path, team, header));
out:
    recsys_text_close(&text);
    base_free(header);
    return st;
}

static base_status build_at(const struct recsys_source *source, int threads, struct base_team *team,
                            const char *place)
{
    base_status st = BASE_OK;
    struct base_replacement r = {.fd = -1};
    char *folder = base_strndup(place, (size_t)(strrchr(place, '/') - place));

    TRY(base_make_dirs(folder));
    TRY(base_replace_begin(place, &r));
    if (fchmod(r.fd, 0644) != 0) /* whatever the umask: one that others may write to is not used */
        TRY(base_write_failed(place));
    TRY(build(source, threads, team, r.fd, r.temporary));
    TRY(base_replace_commit(&r));
out:
    base_replace_end(&r);
    base_free(folder);
    return st;
}

static base_status build_in_memory(const struct recsys_source *source, int threads,
                                   struct base_team *team, struct recsys_ratings *r)
{
    base_status st = BASE_OK;
    int fd = memfd_create("ratings", MFD_CLOEXEC);
    char *path = base_format("/proc/self/fd/%d", fd);

    if (fd < 0)
        TRY(base_fail(BASE_ERR_IO, "cannot make a file in memory: %m"));
    TRY(build(source, threads, team, fd, path));
    TRY(recsys_cache_open(path, NULL, team, r));
out:
    if (fd >= 0)
        close(fd);
    base_free(path);
    return st;
}

/* Has the text changed while it was read? */
static base_status check_unchanged(const char *path, const struct recsys_options *options,
                                   const struct recsys_source *source)
{
    base_status st = BASE_OK;
    struct recsys_source now;

    TRY(recsys_source_open(path, options, &now));
    if (strcmp(now.identity, source->identity) != 0)
        TRY(base_fail(BASE_ERR_DATA, "%s changed while it was read; try again", path));
out:
    recsys_source_close(&now);
    return st;
}

/* Builds the cache in the first place that can be written to, and maps it. */
static base_status build_somewhere(const struct recsys_source *source, char *const places[PLACES],
                                   int threads, struct base_team *team, struct recsys_ratings *r)
{
    base_status st = BASE_OK;

    for (int i = 0; i < PLACES; i++) {
        if (places[i] == NULL)
            continue;
        st = build_at(source, threads, team, places[i]);
        if (st == BASE_OK) {
            r->cache = base_strdup(places[i]);
            return recsys_cache_open(places[i], source, team, r);
        }
        if (st != BASE_ERR_IO)
            return st;
    }
    if (st != BASE_OK)
        base_warn("the ratings are not cached: %s", base_message());
    return build_in_memory(source, threads, team, r);
}

/* ---- opening ---- */

static const double PATIENCE = 60, GLANCE = 0.05; /* seconds */

/* Waits for another process that reads the text, but not for ever: any that may read it can lock
 * it. -1: there are no locks here. */
static int lock_source(const struct recsys_source *source)
{
    const char *path = source->files[0].path;
    const double until = base_now() + PATIENCE;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool told = false;

    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        if (!told)
            base_info("waiting for another process that reads %s", path);
        told = true;
        if (base_now() > until) {
            base_info("it takes its time; %s is read here, too", path);
            break;
        }
        base_sleep_until(base_now() + GLANCE);
    }
    return fd;
}

static base_status open_source(const char *path, const struct recsys_options *options,
                               const struct recsys_source *source, struct recsys_ratings *r)
{
    base_status st = BASE_OK;
    uint64_t bytes = 0;
    struct base_team *team = NULL;
    char *places[PLACES] = {0};
    double started = base_now();
    int threads, lock = -1;

    for (size_t i = 0; i < source->file_count; i++)
        bytes += source->files[i].size;
    threads = recsys_threads(options->threads, bytes / 16);
    TRY(base_team_new(threads, &team));
    if (!options->no_cache)
        find_places(source, places);
    if ((r->cached = open_cached(places, source, false, team, r)))
        goto out;
    if (!options->no_cache)
        lock = lock_source(source);
    if ((r->cached = open_cached(places, source, true, team, r)))
        goto out;
    TRY(build_somewhere(source, places, threads, team, r));
    TRY(check_unchanged(path, options, source));
    base_info("%s: read %llu rating%s in %.1f s%s%s", path, (unsigned long long)r->count,
              base_plural((int64_t)r->count), base_now() - started,
              r->cache != NULL ? ", kept in " : "", r->cache != NULL ? r->cache : "");
out:
    if (lock >= 0)
        close(lock);
    for (int i = 0; i < PLACES; i++)
        base_free(places[i]);
    base_team_free(team);
    return st;
}

static base_status check_strict(const struct recsys_ratings *r)
{
    const struct recsys_faults *f = &r->faults;
    size_t first = f->examples != NULL ? strcspn(f->examples, "\n") : 0;

    if (f->bad_lines == 0 && f->duplicates == 0)
        return BASE_OK;
    return base_fail(BASE_ERR_DATA,
                     "%s has %llu bad line%s and %llu duplicate%s, which --strict refuses; %.*s",
                     r->path, (unsigned long long)f->bad_lines, base_plural((int64_t)f->bad_lines),
                     (unsigned long long)f->duplicates, base_plural((int64_t)f->duplicates),
                     (int)first, f->examples != NULL ? f->examples : "");
}

base_status recsys_ratings_open(const char *path, const struct recsys_options *options,
                                struct recsys_ratings **ratings_p)
{
    base_status st = BASE_OK;
    struct recsys_source source = {0};
    struct recsys_ratings *r = base_calloc(1, sizeof *r);

    *ratings_p = NULL;
    r->path = base_strdup(path);
    TRY(recsys_source_open(path, options, &source));
    TRY(open_source(path, options, &source, r));
    if (options->strict)
        TRY(check_strict(r));
    *ratings_p = r;
    r = NULL;
out:
    recsys_source_close(&source);
    recsys_ratings_close(r);
    return st;
}

void recsys_ratings_close(struct recsys_ratings *r)
{
    if (r == NULL)
        return;
    if (r->map != NULL)
        base_map_close(r->map);
    base_free(r->map);
    base_free(r->path);
    base_free(r->cache);
    base_free(r);
}

void recsys_warn(const struct recsys_ratings *r)
{
    const struct recsys_faults *f = &r->faults;
    const char *at = f->examples;
    uint64_t told = 0, all = f->bad_lines + f->duplicates;

    if (f->bad_lines > 0)
        base_warn("%s: %llu line%s left out because %s no rating", r->path,
                  (unsigned long long)f->bad_lines, f->bad_lines == 1 ? " was" : "s were",
                  f->bad_lines == 1 ? "it is" : "they are");
    if (f->duplicates > 0)
        base_warn("%s: %llu rating%s came again for the same user and item", r->path,
                  (unsigned long long)f->duplicates, base_plural((int64_t)f->duplicates));
    for (; at != NULL && *at != '\0'; told++) {
        size_t length = strcspn(at, "\n");

        base_warn("%.*s", (int)length, at);
        at += length + (at[length] == '\n');
    }
    if (told < all)
        base_warn("%s: … and %llu more", r->path, (unsigned long long)(all - told));
}

/* ---- ids ---- */

static int compare_id(const struct recsys_ids *ids, uint32_t at, const char *id, uint32_t number)
{
    if (ids->number == NULL)
        return strcmp(ids->text + ids->text_start[at], id);
    return (ids->number[at] > number) - (ids->number[at] < number);
}

bool recsys_id_find(const struct recsys_ids *ids, const char *id, uint32_t *number_p)
{
    uint32_t low = 0, high = ids->count, number = 0;

    *number_p = 0;
    if (ids->number != NULL &&
        !recsys_number((struct recsys_field){id, strlen(id)}, RECSYS_MOST_NUMBER, &number))
        return false;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = compare_id(ids, middle, id, number);

        if (order == 0) {
            *number_p = middle;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

uint32_t *recsys_ids_match(const struct recsys_ids *of, const struct recsys_ids *in)
{
    uint32_t *numbers = base_calloc(of->count, sizeof *numbers);
    struct recsys_id text;

    for (uint32_t i = 0; i < of->count; i++)
        if (!recsys_id_find(in, recsys_id_text(of, i, &text), &numbers[i]))
            numbers[i] = RECSYS_NO_ID;
    return numbers;
}

const char *recsys_id_text(const struct recsys_ids *ids, uint32_t number, struct recsys_id *text)
{
    if (ids->number == NULL)
        return ids->text + ids->text_start[number];
    snprintf(text->text, sizeof text->text, "%u", ids->number[number]);
    return text->text;
}
