/* covers: src/report/story.c src/report/story_cluster.c src/watch/parts.c src/watch/metrics.c */
/* SPDX-License-Identifier: MIT
 *
 * A run's folder: its events, its cluster's events and a log, each up to a byte 0x1e. Read in two
 * pieces it tells what it tells when it is read at once. What is drawn of it holds nothing that a
 * browser would run, a terminal obey or Prometheus not understand.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/file.h"
#include "base/mem.h"
#include "watch/metrics.h"
#include "watch/parts.h"
#include "watch/screen.h"

static char folder[] = "/tmp/fuzz_watch_XXXXXX";

static void remove_folder(void)
{
    base_ignore(base_remove_tree(folder));
}

/* Locked, as the folder of a run that is under way. */
static void make_folder(void)
{
    if (mkdtemp(folder) == NULL || atexit(remove_folder) != 0 ||
        flock(open(folder, O_RDONLY | O_DIRECTORY), LOCK_EX) != 0)
        abort();
}

static void write_file(const char *name, const char *bytes, size_t count)
{
    char *path = base_format("%s/%s", folder, name);
    FILE *file = fopen(path, "wb");

    if (file == NULL || fwrite(bytes, 1, count, file) != count || fclose(file) != 0)
        abort();
    base_free(path);
}

/* Moves past the next part; *bytes is what follows. */
static size_t part(const char **bytes, size_t *left, const char **part_p)
{
    const char *end = memchr(*bytes, 0x1e, *left);
    size_t count = end != NULL ? (size_t)(end - *bytes) : *left;

    *part_p = *bytes;
    *bytes += count + (end != NULL);
    *left -= count + (end != NULL);
    return count;
}

static void check_drawn(const struct watch_look *look)
{
    struct watch_parts parts = {0};
    struct base_str screen = {0}, metrics = {0};
    char *event = watch_parts_draw(&parts, look);

    if (event == NULL || strstr(event, "<script") != NULL || strstr(event, "\n\n") == NULL ||
        strchr(event, '\n')[2] != '\0')
        abort();
    watch_screen(look, 100, 30, &screen);
    for (const char *at = screen.text; *at != '\0'; at++)
        if (((unsigned char)*at < ' ' && *at != '\n') || *at == 0x7f)
            abort();
    watch_metrics(look, &metrics);
    for (char *rest = metrics.text, *line; (line = strsep(&rest, "\n")) != NULL;)
        if (line[0] != '\0' && line[0] != '#' && strncmp(line, "paceline_", 9) != 0)
            abort();
    base_free(event);
    base_str_fini(&screen);
    base_str_fini(&metrics);
    watch_parts_fini(&parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const char run[] = "{\"status\":\"running\"}";
    static bool made;
    const char *at = (const char *)bytes, *events, *cluster, *log;
    size_t event_count = part(&at, &count, &events), cluster_count = part(&at, &count, &cluster),
           log_count = part(&at, &count, &log);
    struct watch_look look, again;
    json_t *a, *b;

    if (!made)
        make_folder();
    made = true;
    write_file("run.json", run, sizeof run - 1);
    write_file("log-1.txt", log, log_count);
    write_file("cluster.jsonl", cluster, cluster_count / 2);
    write_file("events.jsonl", events, event_count / 2);
    if (watch_look_open("", folder, &look) != BASE_OK)
        abort();
    write_file("cluster.jsonl", cluster, cluster_count);
    write_file("events.jsonl", events, event_count);
    watch_look_again(&look);
    if (watch_look_open("", folder, &again) != BASE_OK)
        abort();
    a = watch_look_json(&look);
    b = watch_look_json(&again);
    if (!json_equal(a, b))
        abort();
    look.version++;
    check_drawn(&look);
    json_decref(a);
    json_decref(b);
    watch_look_close(&look);
    watch_look_close(&again);
    return 0;
}
