/* SPDX-License-Identifier: MIT */
#include "cli/stories.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "report/braille.h"

base_status cli_stories_read(const char *runs_dir, const struct cli_positional *names,
                             struct cli_stories *stories)
{
    base_status st = BASE_OK;

    stories->runs = base_calloc((size_t)names->count, sizeof *stories->runs);
    stories->pages = base_calloc((size_t)names->count, sizeof *stories->pages);
    for (int i = 0; i < names->count; i++) { /* a name that is no run is told before all the work */
        stories->count = i + 1;
        TRY(train_run_open(runs_dir, names->at[i], &stories->runs[i]));
    }
    for (int i = 0; i < names->count; i++) {
        struct report_story *story = &stories->pages[i].story;

        story->name = stories->runs[i].name;
        story->status = train_run_status(&stories->runs[i]);
        story->json = stories->runs[i].json;
        report_story_read(stories->runs[i].path, story);
    }
out:
    return st;
}

void cli_stories_fini(struct cli_stories *stories)
{
    for (int i = 0; i < stories->count; i++) {
        report_story_fini(&stories->pages[i].story);
        base_free(stories->pages[i].trace);
        train_run_close(&stories->runs[i]);
    }
    base_free(stories->runs);
    base_free(stories->pages);
}

bool cli_ends(const char *path, const char *ending)
{
    size_t length = strlen(path), own = strlen(ending);

    return length > own && strcmp(path + length - own, ending) == 0;
}

void cli_print_chart(const struct report_chart *chart)
{
    struct winsize size = {0};
    struct base_str text = {0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        size = (struct winsize){.ws_col = 80, .ws_row = 24};
    report_braille_lines(chart, size.ws_col, size.ws_row - 1,
                         isatty(STDOUT_FILENO) == 1 && base_log_color(), &text);
    fputs(text.text, stdout);
    base_str_fini(&text);
}
