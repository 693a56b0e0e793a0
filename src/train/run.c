/* SPDX-License-Identifier: MIT */
#include "train/run.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/thread.h"
#include "model/model.h"

enum { RUN_JSON_LIMIT = 64 << 20 };

static void set_paths(struct train_run *run, char *path)
{
    const char *slash = strrchr(path, '/');

    run->path = path;
    run->name = base_strdup(slash != NULL ? slash + 1 : path);
    run->checkpoints = base_format("%s/checkpoints", path);
    run->events = base_format("%s/events.jsonl", path);
}

/* Makes the folder; *taken_p: it exists already. */
static base_status make_folder(const char *path, bool *taken_p)
{
    *taken_p = false;
    if (mkdir(path, 0777) == 0)
        return BASE_OK;
    *taken_p = errno == EEXIST;
    return base_fail(BASE_ERR_IO, "cannot make the folder %s: %m", path);
}

/* An empty folder is no run: its maker died before there was anything to keep. */
static bool is_empty(const char *path)
{
    char **names = NULL;
    size_t count = 0;
    base_status st = base_list_dir(path, &names, &count);

    base_names_free(names, count);
    return st == BASE_OK && count == 0;
}

/* Names are shown in lines and tables, typed after options, and are names of folders. */
static bool is_name(const char *name)
{
    for (const char *at = name; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f || *at == '/')
            return false;
    return name[0] != '\0' && name[0] != '.' && name[0] != '-';
}

base_status train_run_check(const char *runs_dir, const char *name)
{
    base_status st = BASE_OK;
    char *path = base_format("%s/%s", runs_dir, name);

    if (!is_name(name))
        TRY(base_fail(BASE_ERR_USAGE,
                      "'%s' is no name for a run: no slash, no control character, no dot or hyphen "
                      "in front, not empty",
                      name));
    if (base_exists(path) && !is_empty(path))
        TRY(base_fail(BASE_ERR_USAGE,
                      "run %s exists already; choose another --run name, or go on with it: "
                      "--resume %s",
                      name, name));
out:
    base_free(path);
    return st;
}

static base_status free_folder(const char *runs_dir, const char *stem, char **path_p)
{
    for (int i = 1; i < 1000000; i++) {
        char *path = base_format("%s/%s-%d", runs_dir, stem, i);
        bool taken = false;
        base_status st = make_folder(path, &taken);

        if (st == BASE_OK) {
            *path_p = path;
            return st;
        }
        base_free(path);
        if (!taken)
            return st;
    }
    return base_fail(BASE_ERR_IO, "no free name %s-N in %s; choose one with --run", stem, runs_dir);
}

base_status train_run_create(const char *runs_dir, const char *name, const char *stem, bool ours,
                             struct train_run *run_p)
{
    base_status st = BASE_OK;
    char *path = NULL, created[32];
    time_t now = time(NULL);
    struct tm utc;

    *run_p = (struct train_run){0};
    if (name != NULL && !ours)
        TRY(train_run_check(runs_dir, name));
    TRY(base_make_dirs(runs_dir));
    if (name == NULL) {
        TRY(free_folder(runs_dir, stem, &path));
    } else {
        path = base_format("%s/%s", runs_dir, name);
        TRY(base_make_dirs(path));
    }
    set_paths(run_p, path);
    path = NULL;
    gmtime_r(&now, &utc);
    strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &utc);
    run_p->json = json_pack("{s:i, s:s, s:s, s:s}", "schema", 1, "name", run_p->name, "version",
                            PACELINE_VERSION, "created", created);
out:
    base_free(path);
    return st;
}

base_status train_run_open(const char *runs_dir, const char *name, struct train_run *run_p)
{
    base_status st = BASE_OK;
    char *path = model_place(name, runs_dir), *file = NULL;

    *run_p = (struct train_run){0};
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
    file = base_format("%s/run.json", path);
    if (!base_exists(file))
        TRY(base_fail(BASE_ERR_USAGE, "there is no run '%s' (no %s); 'paceline runs' lists them",
                      name, file));
    TRY(base_json_load(file, RUN_JSON_LIMIT, &run_p->json));
    set_paths(run_p, path);
    path = NULL;
out:
    base_free(path);
    base_free(file);
    return st;
}

bool train_run_is_here(const struct train_run *run)
{
    char *file = base_format("%s/run.json", run->path);
    json_t *here = NULL;
    bool same = base_exists(file) && base_json_load(file, RUN_JSON_LIMIT, &here) == BASE_OK &&
                json_equal(json_object_get(here, "created"), json_object_get(run->json, "created"));

    json_decref(here);
    base_free(file);
    return same;
}

base_status train_run_about(const struct train_run *run, struct model_about *about_p)
{
    json_t *about = NULL;
    base_status st = base_json_object(run->json, "about", &about);

    *about_p = (struct model_about){0};
    if (st == BASE_OK)
        st = base_prefix(model_about_from_json(about, about_p), "\"about\"");
    return base_prefix(st, "%s/run.json", run->path);
}

void train_run_follow(struct train_run *run_p, const char *path, json_t *json)
{
    *run_p = (struct train_run){.json = json_incref(json)};
    set_paths(run_p, base_strdup(path));
}

base_status train_run_lock(struct train_run *run, double seconds)
{
    static const double GLANCE = 0.1; /* train_run_status has the lock for a moment */
    double deadline = base_now() + (seconds > GLANCE ? seconds : GLANCE);
    int fd = open(run->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool taken;

    if (fd < 0)
        return base_fail(BASE_ERR_IO, "cannot open the folder %s: %m", run->path);
    while ((taken = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) &&
           base_now() < deadline)
        base_sleep_until(base_now() + 5e-3);
    if (taken) {
        close(fd);
        return base_fail(BASE_ERR_USAGE,
                         "run %s is being trained by another process; wait for its end, or stop it",
                         run->name);
    }
    run->lock = fd; /* a file system without locks keeps no run from training */
    run->locked = true;
    return BASE_OK;
}

bool train_run_is_there(const struct train_run *run)
{
    struct stat held, found;

    return fstat(run->lock, &held) == 0 && stat(run->path, &found) == 0 &&
           held.st_dev == found.st_dev && held.st_ino == found.st_ino;
}

void train_run_unlock(struct train_run *run)
{
    if (run->locked)
        close(run->lock);
    run->locked = false;
}

void train_run_close(struct train_run *run)
{
    train_run_unlock(run);
    base_free(run->name);
    base_free(run->path);
    base_free(run->checkpoints);
    base_free(run->events);
    json_decref(run->json);
    *run = (struct train_run){0};
}

static base_status write_json(const struct train_run *run, size_t flags)
{
    char *text = json_dumps(run->json, flags);
    base_status st = train_run_write(run, "run.json", text);

    base_free(text);
    return st;
}

base_status train_run_save(struct train_run *run, const char *status)
{
    bool ended = strcmp(status, "running") != 0;
    base_status st;

    json_object_set_new(run->json, "status", json_string(status));
    if (ended)
        json_object_del(run->json, "pid");
    else
        json_object_set_new(run->json, "pid", json_integer(getpid()));
    st = write_json(run, JSON_INDENT(2));
    /* The epoch that did not fit on the disk or below the limit on file sizes must not keep the end
     * from being told: without blanks the file is smaller than the one before. */
    return st == BASE_OK || !ended ? st : write_json(run, JSON_COMPACT);
}

base_status train_run_write(const struct train_run *run, const char *file, const char *text)
{
    char *path = base_format("%s/%s", run->path, file);
    base_status st = base_file_replace(path, text, strlen(text));

    base_free(path);
    return st;
}

/* Does a process train this run? Where there are no locks it is taken for granted. */
static bool is_locked(const struct train_run *run)
{
    int fd = open(run->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool locked = fd < 0 || flock(fd, LOCK_SH | LOCK_NB) != 0;

    if (fd >= 0)
        close(fd);
    return locked;
}

const char *train_run_status(const struct train_run *run)
{
    const char *status = json_string_value(json_object_get(run->json, "status"));

    if (status == NULL)
        return "unknown";
    return strcmp(status, "running") == 0 && !is_locked(run) ? "lost" : status;
}

/* Seconds since a file was written. */
static double age_of(const struct stat *file)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)(now.tv_sec - file->st_mtim.tv_sec) +
           1e-9 * (double)(now.tv_nsec - file->st_mtim.tv_nsec);
}

/* The last complete line of a step; *text is cut into lines. */
static json_t *last_step(char *text)
{
    static const char begin[] = "{\"event\":\"step\",";
    const char *newest = NULL;
    char *rest = text;

    while (rest != NULL) {
        char *line = strsep(&rest, "\n");

        if (rest != NULL && strncmp(line, begin, sizeof begin - 1) == 0)
            newest = line;
    }
    return newest != NULL ? json_loads(newest, 0, NULL) : NULL;
}

/* The same of the last `tail` bytes of a file. */
static json_t *last_step_within(int fd, off_t size, off_t tail)
{
    char *text = base_calloc(1, (size_t)tail + 1);
    ssize_t count = pread(fd, text, (size_t)tail, size > tail ? size - tail : 0);
    json_t *step;

    text[count > 0 ? count : 0] = '\0';
    step = last_step(text);
    base_free(text);
    return step;
}

json_t *train_run_newest_step(const struct train_run *run, double *age_p)
{
    enum { TAIL = 64 << 10, MOST = 64 << 20 };
    char *file = base_format("%s/run.json", run->path);
    int fd = open(run->events, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat about = {0};
    json_t *step = NULL;

    *age_p = stat(file, &about) == 0 ? age_of(&about) : INFINITY;
    if (fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) {
        /* Other events may follow the newest step. */
        for (off_t tail = TAIL; step == NULL && tail <= MOST; tail *= 4) {
            step = last_step_within(fd, about.st_size, tail);
            if (tail >= about.st_size)
                break;
        }
        *age_p = fmax(0, fmin(*age_p, age_of(&about)));
    }
    if (fd >= 0)
        close(fd);
    base_free(file);
    return step;
}
