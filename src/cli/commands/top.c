/* SPDX-License-Identifier: MIT
 *
 * paceline top RUN: a run in the terminal, redrawn in place until it ends.
 */
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/json.h"
#include "base/stop.h"
#include "cli/cli.h"
#include "watch/screen.h"

struct args {
    struct cli_runs_args common;
    double interval;
    bool once;
};

/* In a terminal: over what was there. Each line is cleared to its end, and what is below it. */
static void cmd_top_redraw(const struct watch_look *look)
{
    struct winsize size = {0};
    struct base_str text = {0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row < 2)
        size = (struct winsize){.ws_col = 80, .ws_row = 24};
    watch_screen(look, size.ws_col, size.ws_row - 1, &text);
    fputs("\033[H", stdout);
    for (const char *at = text.text; *at != '\0'; at++) {
        if (*at == '\n')
            fputs("\033[K", stdout);
        fputc(*at, stdout);
    }
    fputs("\033[J", stdout);
    base_str_fini(&text);
}

static base_status cmd_top_show(const struct args *a, const struct watch_look *look)
{
    bool terminal = isatty(STDOUT_FILENO) && !a->once;
    struct base_str text = {0};
    json_t *object;
    base_status st = BASE_OK;

    if (a->common.json) {
        object = watch_look_json(look);
        st = base_json_print(object);
        json_decref(object);
        return st;
    }
    if (terminal) {
        cmd_top_redraw(look);
    } else {
        if (a->once)
            watch_screen(look, 0, 0, &text);
        else
            watch_screen_line(look, &text);
        printf("%s%s", text.text, a->once ? "" : "\n");
        base_str_fini(&text);
    }
    if (fflush(stdout) != 0)
        st = base_fail(BASE_ERR_IO, "cannot write to standard output: %m");
    return st;
}

static base_status cmd_top(void *args, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct args *a = args;
    struct watch_look look = {0};
    uint64_t shown = 0;
    bool ended = false;

    TRY(watch_look_open(a->common.runs_dir, positional->at[0], &look));
    base_stop_install(NULL);
    if (!a->once && !a->common.json && isatty(STDOUT_FILENO))
        fputs("\033[2J", stdout);
    while (!ended && base_stop_signal() == 0) {
        ended = a->once || watch_look_ended(&look);
        if (look.version != shown)
            TRY(cmd_top_show(a, &look));
        shown = look.version;
        if (!ended && poll(NULL, 0, (int)(1e3 * a->interval)) == 0)
            watch_look_again(&look);
    }
out:
    watch_look_close(&look);
    return st;
}

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "once", .kind = BASE_FLAG, .offset = AT(once),
     .help = "show it as it is now, whole, and end", .local = true},
    {.name = "interval", .argument = "S", .kind = BASE_REAL, .offset = AT(interval), .min = 0.1, .max = 3600,
     .help = "seconds between two looks", .local = true},
    {.table = cli_runs_options, .offset = AT(common)},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_top = {
    .name = "top",
    .help = "a run in the terminal while it goes on: workers, hosts, rates, losses",
    .usage = "paceline top RUN [options]",
    .examples = "  paceline top vgg11-cifar10-1\n"
                "  paceline top mine >progress.txt          # a line whenever something is new\n"
                "  paceline top mine --once --json | jq '.newest'\n",
    .completes = "RUN",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.common = {.runs_dir = "runs"}, .interval = 1},
    .min_positional = 1,
    .max_positional = 1,
    .run = cmd_top,
};
