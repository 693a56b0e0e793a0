/* SPDX-License-Identifier: MIT
 *
 * A server of src/http/ for tests, of unit tests and of fuzz targets alike: no cmocka here.
 */
#ifndef SUPPORT_SERVER_H
#define SUPPORT_SERVER_H

#include "http/server.h"

/* With `routes`, on any free port, and without an error_body of its own with one that says
 * "{STATUS MESSAGE}"; ends the program where it cannot start. http_server_close. */
struct http_server *support_serve(struct http_setup setup, const struct http_route *routes);

#endif
