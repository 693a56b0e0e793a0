/* SPDX-License-Identifier: MIT
 *
 * A rating model as arrays of NumPy: what `export` writes of it.
 */
#ifndef CLI_EXPORT_ARRAYS_H
#define CLI_EXPORT_ARRAYS_H

#include "base/json.h"
#include "store/checkpoint.h"

/* Into `folder`, which is made: NAME.npy for each tensor of the model, and users.txt and items.txt,
 * the ids of the rows, one a line. *files_p: their names; a new reference. */
base_status cli_export_arrays(const struct store_checkpoint *checkpoint, const char *folder,
                              json_t **files_p);

#endif
