/* SPDX-License-Identifier: MIT
 *
 * A lab as one HTML page that stands alone, made of the pieces of report/: its tables, its plots,
 * and links to the pages of its runs, which are written beside it.
 */
#ifndef LAB_PAGE_H
#define LAB_PAGE_H

#include "lab/work.h"

struct lab_page {
    const struct lab_work *work; /* after lab_work */
    const char *command;         /* as a person would type it */
    bool quick;
};

/* FOLDER/report.html, and report.html in the folder of every finished run that is still there and
 * has none. *path_p: base_free. */
base_status lab_page_write(const struct lab_page *page, char **path_p);

#endif
