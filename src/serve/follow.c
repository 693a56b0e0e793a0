/* SPDX-License-Identifier: MIT
 *
 * A checkpoint appears whole, by a rename into RUN/checkpoints (store/checkpoint.h); that is the
 * moment to look. The newest that verifies is opened beside the one in use, and workers take it at
 * their next batch. If none can be opened the old weights stay, and the person is told.
 */
#include "serve/follow.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/register.h"

struct followed {
    char *name, *run, *checkpoints;
    int run_watch, watch; /* watches the run's folder until `checkpoints` exists, then that */
    bool gone;            /* neither folder exists any more, and a message said so */
};

struct serve_follower {
    struct serve *serve;
    int changes, end; /* descriptors: inotify, and an event that ends the thread */
    struct followed runs[BASE_MAX_TEXTS];
    int count;
    pthread_t thread;
    bool started;
};

base_status serve_follower_new(struct serve *serve, struct serve_follower **follower_p)
{
    base_status st = BASE_OK;
    struct serve_follower *f = base_calloc(1, sizeof *f);

    *follower_p = NULL;
    f->serve = serve;
    f->end = eventfd(0, EFD_CLOEXEC);
    f->changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (f->changes < 0 || f->end < 0)
        TRY(base_fail(BASE_ERR_IO, "runs cannot be followed: %m"));
    *follower_p = f;
    f = NULL;
out:
    serve_follower_free(f);
    return st;
}

void serve_follower_free(struct serve_follower *f)
{
    if (f == NULL)
        return;
    if (f->started) {
        eventfd_write(f->end, 1);
        pthread_join(f->thread, NULL);
    }
    for (int i = 0; i < f->count; i++) {
        base_free(f->runs[i].name);
        base_free(f->runs[i].run);
        base_free(f->runs[i].checkpoints);
    }
    if (f->changes >= 0)
        close(f->changes);
    if (f->end >= 0)
        close(f->end);
    base_free(f);
}

/* Watches the folder of checkpoints or, until it exists, the run's folder in which it will appear.
 */
static void watch(struct serve_follower *f, struct followed *r)
{
    if (r->watch >= 0)
        return;
    r->watch = inotify_add_watch(f->changes, r->checkpoints, IN_MOVED_TO | IN_ONLYDIR);
    if (r->watch < 0 && r->run_watch < 0)
        r->run_watch = inotify_add_watch(f->changes, r->run, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
}

base_status serve_follower_add(struct serve_follower *f, const char *name, const char *run)
{
    struct followed *r = &f->runs[f->count++];
    char *place = model_place(run, f->serve->setup->runs_dir);

    *r = (struct followed){.name = base_strdup(name),
                           .run = place,
                           .checkpoints = base_format("%s/checkpoints", place),
                           .run_watch = -1,
                           .watch = -1};
    watch(f, r);
    if (r->watch >= 0 || r->run_watch >= 0)
        return BASE_OK;
    return base_fail(BASE_ERR_USAGE, "run %s cannot be followed: %m", run);
}

static const char *digest_of(const struct serve_loaded *loaded)
{
    const char *digest =
        loaded != NULL
            ? json_string_value(json_object_get(loaded->model.checkpoint.manifest, "digest"))
            : NULL;

    return digest != NULL ? digest : "";
}

/* Most often another run has a new checkpoint. This tells without opening this run's newest one. */
static bool has_newest(const struct followed *r, const struct serve_loaded *current)
{
    char *newest = store_newest_digest(r->checkpoints);
    bool has = newest != NULL && strcmp(newest, digest_of(current)) == 0;

    base_free(newest);
    return has;
}

/* Loads the newest checkpoint unless it is in use already. */
static void renew(struct serve_follower *f, const struct followed *r)
{
    struct serve_models *models = f->serve->models;
    bool known;
    struct serve_version *v = serve_models_find(models, r->name, serve_first_version, &known);
    struct serve_loaded *current, *newest = NULL;

    if (v == NULL || v->from_store) { /* it was unregistered; another model may have its name now */
        serve_models_release(models, v);
        return;
    }
    current = serve_version_loaded(v);
    if (has_newest(r, current))
        goto out;
    if (serve_loaded_open(r->run, f->serve->setup->runs_dir, v->settings.batch_size, &newest) !=
        BASE_OK) {
        base_warn("%s goes on with its weights: %s", r->name, base_message());
    } else if (strcmp(digest_of(newest), digest_of(current)) == 0) {
        serve_loaded_unref(newest); /* the newest whole checkpoint is the one in use */
    } else {
        base_info("%s answers with step %llu from now on", r->name,
                  (unsigned long long)newest->model.checkpoint.step);
        serve_version_replace(v, newest);
    }
out:
    serve_loaded_unref(current);
    serve_models_release(models, v);
}

/* Forgets the watch of a folder that was removed. */
static void forget_watch(struct serve_follower *f, int watch)
{
    for (int i = 0; i < f->count; i++) {
        if (f->runs[i].watch == watch)
            f->runs[i].watch = -1;
        if (f->runs[i].run_watch == watch)
            f->runs[i].run_watch = -1;
    }
}

/* True if a checkpoint or the folder of checkpoints has come, or a folder is gone. Other files come
 * and go beside them. */
static bool hear_changes(struct serve_follower *f)
{
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t count;
    bool heard = false;

    while ((count = read(f->changes, events, sizeof events)) > 0)
        for (char *at = events; at < events + count;) {
            const struct inotify_event *event = (const void *)at;

            heard |= event->len > 0 && (strncmp(event->name, "step-", 5) == 0 ||
                                        strcmp(event->name, "checkpoints") == 0);
            heard |= (event->mask & (IN_Q_OVERFLOW | IN_IGNORED)) != 0;
            if ((event->mask & IN_IGNORED) != 0)
                forget_watch(f, event->wd);
            at += sizeof *event + event->len;
        }
    return heard;
}

static void look_at_runs(struct serve_follower *f)
{
    for (int i = 0; i < f->count; i++) {
        struct followed *r = &f->runs[i];

        watch(f, r);
        if (!r->gone && r->watch < 0 && r->run_watch < 0) {
            r->gone = true;
            base_warn("%s is gone; %s goes on with its weights, and a run that takes its place is "
                      "followed after a restart",
                      r->run, r->name);
        }
        if (store_has_checkpoint(r->checkpoints))
            renew(f, r);
    }
}

static void *follow(void *argument)
{
    struct serve_follower *f = argument;
    struct pollfd fds[] = {{.fd = f->end, .events = POLLIN}, {.fd = f->changes, .events = POLLIN}};

    look_at_runs(f); /* for checkpoints that came before the watch */
    while (fds[0].revents == 0)
        if (poll(fds, 2, -1) > 0 && fds[1].revents != 0 && hear_changes(f))
            look_at_runs(f);
    return NULL;
}

base_status serve_follower_start(struct serve_follower *f)
{
    if ((errno = pthread_create(&f->thread, NULL, follow, f)) != 0)
        return base_fail(BASE_ERR_IO, "cannot start a thread: %m");
    f->started = true;
    return BASE_OK;
}
