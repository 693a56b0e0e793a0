/* SPDX-License-Identifier: MIT
 *
 * paceline audit of a network: which images that it was trained on open a backdoor (train/audit.h).
 */
#ifndef CLI_AUDIT_IMAGES_H
#define CLI_AUDIT_IMAGES_H

#include "base/option.h"

struct cli_audit_images {
    const char *run, *runs_dir;
    const char *drop;              /* NULL: no index is written */
    const struct base_texts *data; /* sets; none: what the run was trained on */
    int threads;
    int64_t show;
    bool json;
};

base_status cli_audit_images(const struct cli_audit_images *audit);

#endif
