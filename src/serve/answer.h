/* SPDX-License-Identifier: MIT
 *
 * Answers and refusals in the forms that clients of TorchServe know: JSON, and for errors
 * {"code","type","message"}; under /v2 {"error"}, as the Open Inference Protocol has it.
 */
#ifndef SERVE_ANSWER_H
#define SERVE_ANSWER_H

#include "serve/version.h"

/* Takes over `value`. */
void serve_answer(struct http_request *request, int status, json_t *value);
/* {"status": TEXT} */
void serve_answer_status(struct http_request *request, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* `type` is one of TorchServe's names of exceptions; NULL: the usual one of the status. */
void serve_refuse(struct http_request *request, int status, const char *type, const char *format,
                  ...) __attribute__((format(printf, 4, 5)));

/* For http_setup. It changes the status of a wrong token to TorchServe's 400. */
char *serve_error_body(void *context, const struct http_request *request, int *status,
                       const char *message);

/* Both free the job. */
void serve_answer_job(const struct serve_loaded *loaded, struct serve_job *job, const float *y);
void serve_refuse_job(struct serve_job *job);

/* y (n,outputs) as the body of a prediction: for every sample the five best classes, best first, or
 * the target of a regression, or else the values. */
json_t *serve_classes(const struct serve_loaded *loaded, const struct serve_job *job,
                      const float *y);

#endif
