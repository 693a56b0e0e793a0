/* SPDX-License-Identifier: MIT
 *
 * A lab: an experiment as a JSON file (docs/labs.md). Its cases are options of `paceline train`,
 * where a list of values stands for each of them; what comes out are points, of which each is
 * trained once for every seed. This header is the file and what it means; results.h keeps what is
 * done, work.h does the rest, figures.h and summary.h make numbers of it.
 */
#ifndef LAB_LAB_H
#define LAB_LAB_H

#include "base/json.h"
#include "base/option.h"

enum {
    LAB_MAX_POINTS = 1000,
    LAB_MAX_SEEDS = 1000,
    LAB_MAX_RUNS = 10000,
    LAB_MAX_COLUMNS = 32,
    LAB_MAX_PLOTS = 16,
    LAB_MAX_FILE = 1 << 20, /* bytes */
};

/* Settings of the runs of a point, which differ in their seeds alone. */
struct lab_point {
    char *name;           /* "ddp workers=3" */
    char *group;          /* its case's name: "ddp" */
    char *row;            /* its name without what option lab.across has chosen: "workers=3" */
    json_t *options;      /* of train: name → text, number or boolean */
    const json_t *launch; /* words in front of the command ("numactl", …), a list; NULL: none */
    const json_t *theirs; /* figures to compare with, or NULL */
    bool selected;        /* asked for, as all are unless lab_select says otherwise */
    size_t most_seeds;    /* the first so many of the lab's seeds; 0: all */
    int cores;            /* that a run of it keeps busy; set before lab_work */
};

struct lab_plot {
    const char *name;                               /* of the file, without .svg */
    const char *title;                              /* NULL: made of x and y */
    enum { LAB_BARS, LAB_LINES, LAB_SCATTER } kind; /* a bar or a labelled dot a point; or lines */
    const char *x;      /* of lines: an option whose values are numbers, "epoch" or "step"; of a
                         * scatter, a figure */
    const char *y;      /* a figure */
    const char *series; /* of lines: each value of this option has one; NULL: each case has */
    bool log_x, log_y;
    const json_t *only; /* texts: points whose names contain one of them; NULL: all points */
};

struct lab {
    char *name;
    json_t *file; /* owns the texts below */
    const char *about;
    struct lab_point *points;
    size_t point_count;
    int64_t seeds[LAB_MAX_SEEDS];
    size_t seed_count;
    bool parallel; /* runs may go side by side: nothing that is timed counts */
    const char *columns[LAB_MAX_COLUMNS];
    size_t column_count;
    const char *across; /* an option whose values stand side by side in a table; NULL: none */
    const char *best;   /* a figure by which the best case is marked; NULL: none is */
    const struct lab_point *baseline; /* of the figure speedup; NULL: none */
    struct lab_plot plots[LAB_MAX_PLOTS];
    size_t plot_count;
};

/* What a call changes. */
struct lab_changes {
    bool quick;             /* as the file's "quick" says */
    int64_t seeds;          /* 1 … so many; 0: the file's */
    struct base_texts sets; /* "NAME=VALUE": options of all runs */
};

/* Reads it as `file` says, which is kept. Messages name the place inside the file. Whether options
 * and values are train's is not asked here: lab_words are for its parser. */
base_status lab_open(const char *name, json_t *file, const struct lab_changes *changes,
                     struct lab *lab_p);
void lab_close(struct lab *lab); /* accepts zeros */

/* Points whose names contain one of the filters; without filters all. None at all is an error. */
base_status lab_select(struct lab *lab, const struct base_texts *filters);

/* Of the lab's seeds, the first so many are this point's. */
size_t lab_seeds_of(const struct lab *lab, const struct lab_point *point);
/* Runs of all selected points. */
size_t lab_runs(const struct lab *lab);

/* The words of a command line, "--workers=3", NULL-ended; lab_words_free. */
char **lab_words(const struct lab_point *point, int64_t seed);
void lab_words_free(char **words);

/* A value as a person writes it; base_free. */
char *lab_value_text(const json_t *value);

/* The labs that come with the program (labs/), sorted by name; an entry without a name ends them.
 */
struct lab_builtin {
    const char *name, *text;
};
extern const struct lab_builtin lab_builtins[];

/* The file of a lab: one that comes with the program, by its name, or any by its path, which has a
 * slash or ends with .json. *name_p (base_free): what the lab is called. */
base_status lab_find(const char *which, json_t **file_p, char **name_p);

#endif
