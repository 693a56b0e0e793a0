/* SPDX-License-Identifier: MIT */
#include "lab/summary.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

double lab_run_figure(const struct lab *lab, const struct lab_results *results, const char *name,
                      const struct lab_point *point, int64_t seed)
{
    const json_t *record = lab_results_get(results, point, seed);
    struct lab_statistics base;

    if (record == NULL)
        return (double)NAN;
    if (strcmp(name, "speedup") != 0)
        return lab_figure_value(name, record);
    if (lab->baseline == NULL)
        return (double)NAN;
    base = lab_point_figure(lab, results, "samples_per_second", lab->baseline);
    return lab_figure_value("samples_per_second", record) / base.mean;
}

struct lab_statistics lab_point_figure(const struct lab *lab, const struct lab_results *results,
                                       const char *name, const struct lab_point *point)
{
    double values[LAB_MAX_SEEDS];
    size_t seeds = lab_seeds_of(lab, point);

    for (size_t i = 0; i < seeds; i++)
        values[i] = lab_run_figure(lab, results, name, point, lab->seeds[i]);
    return lab_statistics(values, seeds);
}

const struct lab_point *lab_best(const struct lab *lab, const struct lab_results *results)
{
    const struct lab_point *best = NULL;
    double sign = lab->best != NULL && lab_figure_wants_more(lab->best) ? -1 : 1, least = INFINITY;

    for (size_t i = 0; lab->best != NULL && i < lab->point_count; i++) {
        double cost = sign * lab_point_figure(lab, results, lab->best, &lab->points[i]).mean;

        if (lab->points[i].selected && cost < least) { /* NAN is not */
            best = &lab->points[i];
            least = cost;
        }
    }
    return best;
}

double lab_theirs(const struct lab_point *point, const char *name)
{
    const json_t *value = json_object_get(point->theirs, name);

    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static json_t *figures_of(const struct lab *lab, const struct lab_results *results,
                          const struct lab_point *point)
{
    json_t *figures = json_object();

    for (size_t i = 0; i < lab->column_count; i++) {
        struct lab_statistics s = lab_point_figure(lab, results, lab->columns[i], point);

        json_object_set_new(figures, lab->columns[i],
                            json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "runs", (json_int_t)s.count,
                                      "mean", base_json_number(s.mean), "deviation",
                                      base_json_number(s.deviation), "low", base_json_number(s.low),
                                      "high", base_json_number(s.high), "theirs",
                                      base_json_number(lab_theirs(point, lab->columns[i]))));
    }
    return figures;
}

json_t *lab_summary(const struct lab *lab, const struct lab_results *results)
{
    json_t *list = json_array();

    for (size_t i = 0; i < lab->point_count; i++) {
        const struct lab_point *point = &lab->points[i];

        if (point->selected)
            json_array_append_new(list, json_pack("{s:s, s:O, s:o}", "case", point->name, "options",
                                                  point->options, "figures",
                                                  figures_of(lab, results, point)));
    }
    return list;
}
