/* SPDX-License-Identifier: MIT
 *
 * A run as Prometheus reads it.
 */
#ifndef WATCH_METRICS_H
#define WATCH_METRICS_H

#include "watch/look.h"

/* The text format 0.0.4. */
void watch_metrics(const struct watch_look *look, struct base_str *text);

#endif
