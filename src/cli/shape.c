/* SPDX-License-Identifier: MIT */
#include "cli/shape.h"

#include <stdio.h>

base_status cli_shape(const char *text, struct nn_shape *shape_p)
{
    int used = 0;

    *shape_p = (struct nn_shape){0};
    if (text == NULL)
        return BASE_OK;
    if (sscanf(text, "%dx%dx%d%n", &shape_p->c, &shape_p->h, &shape_p->w, &used) != 3 ||
        text[used] != '\0' || shape_p->c < 1 || shape_p->h < 1 || shape_p->w < 1)
        return base_fail(BASE_ERR_USAGE, "--input takes CxHxW such as 3x32x32, not '%s'", text);
    return BASE_OK;
}
