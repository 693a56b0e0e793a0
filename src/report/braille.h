/* SPDX-License-Identifier: MIT
 *
 * A chart of lines as text for a terminal: dots of braille, two across and four down in each place,
 * axes with ticks, and a legend. Several lines differ by colour or, without colours, by a letter
 * where each ends.
 */
#ifndef REPORT_BRAILLE_H
#define REPORT_BRAILLE_H

#include "report/svg.h"

/* At most columns x rows places; fewer than 30 x 8 count as these. */
void report_braille_lines(const struct report_chart *chart, int columns, int rows, bool colours,
                          struct base_str *text);

#endif
