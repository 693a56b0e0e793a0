/* SPDX-License-Identifier: MIT */
#include "serve/answer.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/mem.h"
#include "model/predict.h"

enum { BEST = 5 };

/* The name of each status, and its message where there is no better one. */
static const struct usual {
    int status;
    const char *type, *message;
} usuals[] = {
    {400, "BadRequestException", "Invalid HTTP message."},
    {403, "IllegalArgumentException", "Not allowed."},
    {404, "ResourceNotFoundException",
     "Requested resource is not found, please refer to API document."},
    {405, "MethodNotAllowedException",
     "Requested method is not allowed, please refer to API document."},
    {408, "RequestTimeoutException", "The answer took too long."},
    {409, "ConflictStatusException", "Conflict."},
    {413, "TooLongFrameException", "The body is longer than this server takes."},
    {500, "InternalServerException", "The request could not be computed."},
    {503, "ServiceUnavailableException", "The server is busy; try again later."},
    {507, "OutOfMemoryError", "There is no memory for this model."},
};

static const struct usual *usual_of(int status)
{
    for (size_t i = 0; i < sizeof usuals / sizeof *usuals; i++)
        if (usuals[i].status == status)
            return &usuals[i];
    return usual_of(500);
}

/* True for requests of the Open Inference Protocol, under /v2. */
static bool is_v2(const struct http_request *request)
{
    const char *first = http_segment(request, 0);

    return first != NULL && strcmp(first, "v2") == 0;
}

/* Several lines, as TorchServe writes them; tensors in one line. Nine digits tell every float from
 * the next. The last line ends with a newline, for people who look at it in a terminal. */
static char *dump(const struct http_request *request, json_t *value)
{
    size_t layout = is_v2(request) ? JSON_COMPACT : JSON_INDENT(2);
    char *text = json_dumps(value, layout | JSON_REAL_PRECISION(9));
    char *line = base_format("%s\n", text != NULL ? text : "null");

    json_decref(value);
    base_free(text);
    return line;
}

static json_t *error_of(const struct http_request *request, int status, const char *type,
                        const char *message)
{
    if (is_v2(request))
        return json_pack("{s:o}", "error", base_json_text(message));
    return json_pack("{s:i, s:s, s:o}", "code", status, "type", type, "message",
                     base_json_text(message));
}

char *serve_error_body(void *context, const struct http_request *request, int *status,
                       const char *message)
{
    const char *type = NULL;

    (void)context;
    if (*status == 401) {
        *status = 400;
        type = "InvalidKeyException";
    }
    if (type == NULL)
        type = usual_of(*status)->type;
    return dump(request, error_of(request, *status, type,
                                  message != NULL ? message : usual_of(*status)->message));
}

void serve_answer(struct http_request *request, int status, json_t *value)
{
    char *text = dump(request, value);

    http_answer(request, status, "application/json", text, strlen(text));
}

static char *format_text(const char *format, va_list arguments)
{
    char *text;

    if (vasprintf(&text, format, arguments) < 0)
        return base_strdup("");
    return text;
}

void serve_answer_status(struct http_request *request, int status, const char *format, ...)
{
    va_list arguments;
    char *text;

    va_start(arguments, format);
    text = format_text(format, arguments);
    va_end(arguments);
    serve_answer(request, status, json_pack("{s:o}", "status", base_json_text(text)));
    base_free(text);
}

void serve_refuse(struct http_request *request, int status, const char *type, const char *format,
                  ...)
{
    va_list arguments;
    char *text;

    va_start(arguments, format);
    text = format_text(format, arguments);
    va_end(arguments);
    serve_answer(request, status,
                 error_of(request, status, type != NULL ? type : usual_of(status)->type, text));
    base_free(text);
}

/* ---- jobs ---- */

void serve_refuse_job(struct serve_job *job)
{
    int status = job->st == BASE_ERR_INTERNAL ? 500 : job->st == BASE_ERR_MEMORY ? 507 : 400;

    serve_refuse(job->request, status, NULL, "%s", job->why);
    serve_job_free(job);
}

void serve_answer_job(const struct serve_loaded *loaded, struct serve_job *job, const float *y)
{
    serve_answer(job->request, 200, job->protocol->write(loaded, job, y));
    serve_job_free(job);
}

static json_t *class_answer(const struct serve_loaded *loaded, const float *y)
{
    int best[BEST], count = loaded->outputs < BEST ? loaded->outputs : BEST;
    float scores[BEST];
    json_t *answer = loaded->named ? json_object() : json_array();

    if (!loaded->named) {
        for (int k = 0; k < loaded->outputs; k++)
            json_array_append_new(answer, base_json_number((double)y[k]));
        return answer;
    }
    model_choose_top(y, loaded->outputs, count, best, scores);
    for (int i = 0; i < count; i++)
        json_object_set_new(answer, loaded->model.about.labels[best[i]],
                            base_json_number((double)scores[i]));
    return answer;
}

static json_t *one_answer(const struct serve_loaded *loaded, const float *y)
{
    const struct model_about *about = &loaded->model.about;

    if (model_about_is_regression(about))
        return json_pack("{s:o}", about->labels[0],
                         base_json_number(model_about_number(about, y[0])));
    return class_answer(loaded, y);
}

json_t *serve_classes(const struct serve_loaded *loaded, const struct serve_job *job,
                      const float *y)
{
    json_t *list;

    if (job->answer != NULL)
        return json_incref(job->answer);
    if (!job->samples.list)
        return one_answer(loaded, y);
    list = json_array();
    for (int i = 0; i < job->samples.n; i++)
        json_array_append_new(list, one_answer(loaded, y + (size_t)i * (size_t)loaded->outputs));
    return list;
}
