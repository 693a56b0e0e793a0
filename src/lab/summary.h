/* SPDX-License-Identifier: MIT
 *
 * Results of a lab over its seeds: figures of points, the object of `lab --json`, pictures.
 */
#ifndef LAB_SUMMARY_H
#define LAB_SUMMARY_H

#include "base/str.h"
#include "lab/figures.h"
#include "lab/results.h"

/* A figure of one run, speedup included; NAN where there is none. */
double lab_run_figure(const struct lab *lab, const struct lab_results *results, const char *name,
                      const struct lab_point *point, int64_t seed);
/* … and over the seeds of a point. */
struct lab_statistics lab_point_figure(const struct lab *lab, const struct lab_results *results,
                                       const char *name, const struct lab_point *point);
/* The selected point with the best mean of the figure lab->best; NULL: none has it, or the lab does
 * not ask for it. */
const struct lab_point *lab_best(const struct lab *lab, const struct lab_results *results);
/* What the report that is repeated has for it; NAN: nothing. */
double lab_theirs(const struct lab_point *point, const char *name);

/* Lists of the selected points with their figures. */
json_t *lab_summary(const struct lab *lab, const struct lab_results *results);

/* base_free. */
char *lab_plot_title(const struct lab *lab, const struct lab_plot *plot);

/* A plot as far as there are results for it; false: there are none. `bare`: for a page that has the
 * style and the title. */
bool lab_plot_svg(const struct lab *lab, const struct lab_results *results,
                  const struct lab_plot *plot, bool bare, struct base_str *svg);

/* Writes every plot of the lab into its folder, as far as there are results for it. *paths_p: a
 * list of the files; json_decref. */
base_status lab_draw(const struct lab *lab, const struct lab_results *results, json_t **paths_p);

#endif
