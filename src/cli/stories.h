/* SPDX-License-Identifier: MIT
 *
 * Runs by name, with what their events tell: for `report` and `plot`.
 */
#ifndef CLI_STORIES_H
#define CLI_STORIES_H

#include "cli/cli.h"
#include "report/page.h"
#include "train/run.h"

enum { CLI_MAX_STORIES = 128 };

struct cli_stories { /* init by = {0} */
    struct train_run *runs;
    struct report_page_run *pages;
    int count;
};

base_status cli_stories_read(const char *runs_dir, const struct cli_positional *names,
                             struct cli_stories *stories_p);
void cli_stories_fini(struct cli_stories *stories); /* accepts half-read ones */

/* Does the path end so, with something in front? */
bool cli_ends(const char *path, const char *ending);

/* Lines in the terminal, as large as it is. */
void cli_print_chart(const struct report_chart *chart);

#endif
