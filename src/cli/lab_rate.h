/* SPDX-License-Identifier: MIT
 *
 * `paceline lab lr`: a learning rate range test, shown in the terminal, as a picture and as JSON.
 */
#ifndef CLI_LAB_RATE_H
#define CLI_LAB_RATE_H

#include "cli/command.h"

/* `given`: options of train; among them --lr A..B and --steps N are the test's. */
base_status cli_lab_rate(const struct cli_positional *given, const char *folder, bool json);

#endif
