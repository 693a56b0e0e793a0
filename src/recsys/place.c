/* SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "base/mem.h"
#include "data/get.h"
#include "recsys/ratings.h"

base_status recsys_ratings_path(const char *name, char **path_p)
{
    base_status st = BASE_OK;
    struct data_get_about about = {.images = true};
    bool present = false;

    *path_p = NULL;
    if (data_get_knows(name))
        TRY(data_get_about(name, &about));
    if (about.images) {
        *path_p = base_strdup(name);
        goto out;
    }
    TRY(data_get_folder(name, &present, path_p));
    if (!present && base_exists(name)) { /* as with sets of images */
        base_free(*path_p);
        *path_p = base_strdup(name);
    } else if (!present) {
        TRY(base_fail(BASE_ERR_DATA, "%s is not here; get it with: paceline data get %s", name,
                      name));
    }
out:
    return st;
}
