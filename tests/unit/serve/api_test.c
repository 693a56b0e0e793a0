/* SPDX-License-Identifier: MIT
 *
 * The three APIs over HTTP in one process: batches, full queues, time limits, weights that are
 * replaced under load, the management's requests, and a state that comes back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "serve/answer.h"
#include "serve/batch.h"
#include "serve/register.h"
#include "support/client.h"
#include "support/datafiles.h"
#include "support/server.h"
#include "support/trained.h"

/* ---- a server without main ---- */

struct fixture {
    char *scratch, *store;
    struct serve_setup setup;
    struct serve serve;
};

static void open_port(struct fixture *f, int port, const struct http_route *routes)
{
    struct http_setup setup = http_setup_defaults;

    setup.context = &f->serve;
    setup.error_body = serve_error_body;
    f->serve.servers[port] = support_serve(setup, routes);
}

static void open_serve(struct fixture *f)
{
    f->serve = (struct serve){.setup = &f->setup, .threads = 1, .models = serve_models_new()};
    assert_int_equal(serve_store_open(f->store, &f->serve.store), BASE_OK);
    assert_int_equal(serve_state_open(&f->serve), BASE_OK);
    assert_int_equal(serve_state_restore(&f->serve), BASE_OK);
    open_port(f, SERVE_INFERENCE, serve_inference_routes);
    open_port(f, SERVE_MANAGEMENT, serve_management_routes);
    open_port(f, SERVE_METRICS, serve_metrics_routes);
}

static void close_serve(struct fixture *f)
{
    for (int i = 0; i < SERVE_PORTS; i++)
        http_server_drain(f->serve.servers[i], 0);
    serve_models_free(f->serve.models);
    for (int i = 0; i < SERVE_PORTS; i++)
        http_server_close(f->serve.servers[i]);
    serve_store_close(f->serve.store);
    base_free(f->serve.state_path);
}

/* SCRATCH/store has the models one, two and three: checkpoints of steps 1, 2 and 3. */
static int start(void **state)
{
    struct fixture *f = base_calloc(1, sizeof *f);
    static const char *const names[] = {"one", "two", "three"};

    f->scratch = support_scratch();
    f->store = base_format("%s/store", f->scratch);
    for (size_t i = 0; i < 3; i++) {
        char *checkpoints = base_format("%s/%s/checkpoints", f->store, names[i]);

        support_trained_save(checkpoints, i + 1, NULL, NULL);
        base_free(checkpoints);
    }
    f->setup = (struct serve_setup){.store = f->store,
                                    .runs_dir = f->scratch,
                                    .workers = 1,
                                    .batch_size = 1,
                                    .queue = 100,
                                    .response_timeout = 60};
    open_serve(f);
    *state = f;
    return 0;
}

static int stop(void **state)
{
    struct fixture *f = *state;

    close_serve(f);
    support_scratch_free(f->scratch);
    base_free(f->store);
    base_free(f);
    return 0;
}

static int ask(struct fixture *f, int port, const char *line, const char *body, char **answer_p)
{
    char *request = base_format("%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                "Content-Length: %zu\r\n\r\n%s",
                                line, strlen(body), body);
    int status = support_ask(http_server_port(f->serve.servers[port]), request, answer_p);

    base_free(request);
    return status;
}

static void expect(struct fixture *f, int port, const char *line, const char *body, int status,
                   const char *says)
{
    char *answer;
    int got = ask(f, port, line, body, &answer);

    if (got != status || strstr(answer, says) == NULL)
        fail_msg("%s: got %d instead of %d, or not '%s':\n%s", line, got, status, says, answer);
    base_free(answer);
}

static void manage(struct fixture *f, const char *line, int status, const char *says)
{
    expect(f, SERVE_MANAGEMENT, line, "", status, says);
}

static const char sample[] = "[1,-1,0.5,0,0,0,0,0,0,0,0,0,0,0,0,2]";
static const float values[16] = {1, -1, 0.5f, [15] = 2};

/* The number after "name": in an answer. */
static double number_in(const char *answer, const char *name)
{
    char *key = base_format("\"%s\":", name);
    const char *at = strstr(answer, key);

    base_free(key);
    assert_non_null(at);
    return atof(at + strlen(name) + 3);
}

/* Does the answer have the values of that model of the store, to all digits? */
static bool is_answer_of(struct fixture *f, const char *answer, const char *model)
{
    char *place = base_format("%s/%s", f->store, model);
    float y[3];

    support_trained_run(place, values, y);
    base_free(place);
    return (float)number_in(answer, "a") == y[0] && (float)number_in(answer, "b") == y[1] &&
           (float)number_in(answer, "c") == y[2];
}

/* ---- predictions ---- */

static void test_predict(void **state)
{
    struct fixture *f = *state;
    char *answer;

    manage(f, "POST /models?url=one&initial_workers=2&synchronous=true", 200, "2 initial workers");
    assert_int_equal(ask(f, SERVE_INFERENCE, "POST /predictions/one", sample, &answer), 200);
    assert_true(is_answer_of(f, answer, "one"));
    base_free(answer);
    expect(f, SERVE_INFERENCE, "PUT /predictions/one/1.0", sample, 200, "\"a\"");
    expect(f, SERVE_INFERENCE, "POST /models/one/invoke", sample, 200, "\"a\"");
    expect(f, SERVE_INFERENCE, "POST /invocations", sample, 200, "\"a\"");
    expect(f, SERVE_INFERENCE, "POST /invocations?model_name=two", sample, 404,
           "ModelNotFoundException");
    expect(f, SERVE_INFERENCE, "POST /predictions/one/2.0", sample, 404,
           "ModelVersionNotFoundException");
    expect(f, SERVE_INFERENCE, "POST /predictions/one", "[1,2]", 400, "BadRequestException");
    expect(f, SERVE_INFERENCE, "POST /predictions/one", "", 400, "BadRequestException");
    expect(f, SERVE_INFERENCE, "GET /predictions/one", "", 405, "MethodNotAllowedException");
    expect(f, SERVE_INFERENCE, "GET /nothing", "", 404, "ResourceNotFoundException");
    expect(f, SERVE_INFERENCE, "GET /ping", "", 200, "Healthy");
    expect(f, SERVE_INFERENCE, "OPTIONS /", "", 200, "\"openapi\": \"3.0.1\"");
    expect(f, SERVE_METRICS, "GET /metrics", "", 200,
           "ts_inference_requests_total{model_name=\"one\",model_version=\"1.0\"} 4\n");
}

static void test_v2(void **state)
{
    struct fixture *f = *state;
    static const char body[] =
        "{\"id\":\"7\",\"inputs\":[{\"name\":\"input\",\"shape\":[1,1,4,4],\"datatype\":\"FP32\","
        "\"data\":[1,-1,0.5,0,0,0,0,0,0,0,0,0,0,0,0,2]}]}";
    static const char *const bad[] = {
        "",
        "[]",
        "{\"inputs\":[]}",
        "{\"inputs\":[7]}",
        "{\"inputs\":[{\"name\":\"x\",\"shape\":[2,16],\"datatype\":\"FP32\",\"data\":[1]}]}",
        "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":[1,2,3,4]}]}",
        "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,1,4,4,1,1,1],\"datatype\":\"FP32\",\"data\":[1]}"
        "]}",
        "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,16],\"datatype\":\"BYTES\",\"data\":[1]}]}",
        "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,16],\"datatype\":\"UINT8\","
        "\"data\":[256,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}]}"};

    manage(f, "POST /models?url=one&initial_workers=1&synchronous=true", 200, "");
    expect(f, SERVE_INFERENCE, "GET /v2/health/ready", "", 200, "true");
    expect(f, SERVE_INFERENCE, "GET /v2/models/one", "", 200, "\"shape\":[-1,1,4,4]");
    expect(f, SERVE_INFERENCE, "GET /v2/models/one/versions/1.0/ready", "", 200, "true");
    expect(f, SERVE_INFERENCE, "POST /v2/models/one/infer", body, 200, "\"id\":\"7\"");
    expect(f, SERVE_INFERENCE, "POST /v2/models/one/versions/1.0/infer", body, 200,
           "\"shape\":[1,3]");
    expect(f, SERVE_INFERENCE, "POST /v2/models/none/infer", body, 404, "{\"error\":");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect(f, SERVE_INFERENCE, "POST /v2/models/one/infer", bad[i], 400, "{\"error\":");
}

/* ---- the queue ---- */

struct asking {
    struct fixture *fixture;
    pthread_t thread;
    int status;
    char *answer;
};

static void *ask_one(void *argument)
{
    struct asking *a = argument;

    a->status = ask(a->fixture, SERVE_INFERENCE, "POST /predictions/one", sample, &a->answer);
    return NULL;
}

/* Four requests that come within a minute are one batch. */
static void test_batch(void **state)
{
    struct fixture *f = *state;
    struct asking asking[4];
    char *answer;

    manage(f,
           "POST /models?url=one&batch_size=4&max_batch_delay=60000&initial_workers=2"
           "&synchronous=true",
           200, "");
    for (int i = 0; i < 4; i++) {
        asking[i] = (struct asking){.fixture = f};
        assert_int_equal(pthread_create(&asking[i].thread, NULL, ask_one, &asking[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(asking[i].thread, NULL);
        assert_int_equal(asking[i].status, 200);
        assert_true(is_answer_of(f, asking[i].answer, "one"));
        base_free(asking[i].answer);
    }
    expect(f, SERVE_METRICS, "GET /metrics", "", 200,
           "paceline_batches_total{model_name=\"one\",model_version=\"1.0\"} 1\n");
    expect(f, SERVE_METRICS, "GET /metrics?name[]=paceline_samples_total", "", 200,
           "paceline_samples_total{model_name=\"one\",model_version=\"1.0\"} 4\n");
    assert_int_equal(ask(f, SERVE_METRICS,
                         "GET /metrics?name[]=none&name[]=Requests2XX&name[]=paceline_workers", "",
                         &answer),
                     200);
    assert_non_null(strstr(answer, "\npaceline_workers{"));
    assert_non_null(strstr(answer, "\nRequests2XX{"));
    assert_null(strstr(answer, "paceline_samples_total"));
    base_free(answer);
    expect(f, SERVE_METRICS, "GET /metrics?name[]=none", "", 200, "Content-Length: 0\r\n");
}

static int queued(struct fixture *f)
{
    bool known;
    struct serve_version *v = serve_models_find(f->serve.models, "one", NULL, &known);
    int count = serve_version_status(v).queued;

    serve_models_release(f->serve.models, v);
    return count;
}

/* One request waits for a second to be computed with; there is no place for that one. */
static void test_full_and_late(void **state)
{
    struct fixture *f = *state;
    struct asking asking = {.fixture = f};

    f->setup.queue = 1;
    manage(f,
           "POST /models?url=one&batch_size=2&max_batch_delay=500000&response_timeout=2"
           "&initial_workers=1&synchronous=true",
           200, "");
    assert_int_equal(pthread_create(&asking.thread, NULL, ask_one, &asking), 0);
    while (queued(f) == 0)
        usleep(1000);
    expect(f, SERVE_INFERENCE, "POST /predictions/one", sample, 503, "ServiceUnavailableException");
    pthread_join(asking.thread, NULL);
    assert_int_equal(asking.status, 408);
    assert_non_null(strstr(asking.answer, "RequestTimeoutException"));
    base_free(asking.answer);
}

static void test_no_worker(void **state)
{
    struct fixture *f = *state;

    manage(f, "POST /models?url=one", 200, "0 initial workers");
    expect(f, SERVE_INFERENCE, "POST /predictions/one", sample, 503, "has no worker");
    manage(f, "PUT /models/one?min_worker=1&synchronous=true", 200, "scaled to 1");
    expect(f, SERVE_INFERENCE, "POST /predictions/one", sample, 200, "\"a\"");
    manage(f, "PUT /models/one?min_worker=0&synchronous=true", 200, "scaled to 0");
    expect(f, SERVE_INFERENCE, "POST /predictions/one", sample, 503, "has no worker");
}

/* The last request is answered and both workers leave, whichever of them waits for what. */
static void test_unregister(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 20; i++) {
        struct asking asking = {.fixture = f};

        manage(f,
               "POST /models?url=one&batch_size=2&max_batch_delay=500000&initial_workers=2"
               "&synchronous=true",
               200, "");
        assert_int_equal(pthread_create(&asking.thread, NULL, ask_one, &asking), 0);
        while (queued(f) == 0)
            usleep(1000);
        manage(f, "DELETE /models/one", 200, "unregistered");
        pthread_join(asking.thread, NULL);
        assert_int_equal(asking.status, 200);
        base_free(asking.answer);
    }
}

/* ---- a worker without weights ---- */

static base_status never_read(const struct serve_loaded *loaded, struct serve_job *job)
{
    (void)loaded;
    (void)job;
    return base_fail(BASE_ERR_INTERNAL, "read");
}

/* What a worker does that could not get the memory for its first weights. */
static void run_without_weights(void *context, struct http_request *request)
{
    static const struct serve_protocol protocol = {.read = never_read};
    struct serve_job *job = base_calloc(1, sizeof *job);
    struct serve_worker worker = {.owner = context};

    job->request = request;
    job->protocol = &protocol;
    serve_batch_run(context, &worker, job);
}

static void test_without_weights(void **state)
{
    static const struct http_route routes[] = {{"POST", "/", run_without_weights}, {0}};
    struct serve_version *version =
        serve_version_new("m", "1.0", "m", (struct serve_settings){0}, NULL, 1, 1);
    struct http_setup setup = http_setup_defaults;
    struct http_server *server;
    char *answer;

    (void)state;
    setup.context = version;
    setup.error_body = serve_error_body;
    server = support_serve(setup, routes);
    assert_int_equal(support_ask(http_server_port(server),
                                 "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                 "Content-Length: 0\r\n\r\n",
                                 &answer),
                     507);
    assert_non_null(strstr(answer, "could not get its memory"));
    base_free(answer);
    http_server_close(server);
    serve_version_free(version);
}

/* ---- weights that are replaced ---- */

struct hammering {
    struct fixture *fixture;
    pthread_t thread;
    int answers, wrong;
};

static void *hammer(void *argument)
{
    struct hammering *h = argument;

    for (int i = 0; i < 100; i++) {
        char *answer;
        int status = ask(h->fixture, SERVE_INFERENCE, "POST /predictions/one", sample, &answer);

        h->answers++;
        h->wrong += status != 200 || (!is_answer_of(h->fixture, answer, "one") &&
                                      !is_answer_of(h->fixture, answer, "two"));
        base_free(answer);
    }
    return NULL;
}

static void replace(struct fixture *f, const char *model)
{
    bool known;
    struct serve_version *v = serve_models_find(f->serve.models, "one", NULL, &known);
    struct serve_loaded *loaded;

    assert_int_equal(serve_store_load(f->serve.store, model, v->settings.batch_size, &loaded),
                     SERVE_STORE_FINE);
    serve_version_replace(v, loaded);
    serve_models_release(f->serve.models, v);
}

static void test_replace(void **state)
{
    struct fixture *f = *state;
    struct hammering hammering[3];
    char *answer;

    manage(f, "POST /models?url=one&initial_workers=2&synchronous=true", 200, "");
    for (int i = 0; i < 3; i++) {
        hammering[i] = (struct hammering){.fixture = f};
        assert_int_equal(pthread_create(&hammering[i].thread, NULL, hammer, &hammering[i]), 0);
    }
    for (int i = 0; i < 20; i++)
        replace(f, i % 2 == 0 ? "two" : "one");
    for (int i = 0; i < 3; i++) {
        pthread_join(hammering[i].thread, NULL);
        assert_int_equal(hammering[i].answers, 100);
        assert_int_equal(hammering[i].wrong, 0);
    }
    replace(f, "two");
    assert_int_equal(ask(f, SERVE_INFERENCE, "POST /predictions/one", sample, &answer), 200);
    assert_true(is_answer_of(f, answer, "two"));
    base_free(answer);
}

/* A batch is computed with the weights of the moment when it is full. */
static void test_replace_while_filling(void **state)
{
    struct fixture *f = *state;
    struct asking asking = {.fixture = f};
    char *answer;

    manage(f,
           "POST /models?url=one&batch_size=2&max_batch_delay=500000&initial_workers=1"
           "&synchronous=true",
           200, "");
    assert_int_equal(pthread_create(&asking.thread, NULL, ask_one, &asking), 0);
    while (queued(f) == 0)
        usleep(1000);
    replace(f, "two");
    assert_int_equal(ask(f, SERVE_INFERENCE, "POST /predictions/one", sample, &answer), 200);
    pthread_join(asking.thread, NULL);
    assert_true(is_answer_of(f, answer, "two"));
    assert_true(is_answer_of(f, asking.answer, "two"));
    base_free(answer);
    base_free(asking.answer);
}

/* ---- management ---- */

static void test_manage(void **state)
{
    struct fixture *f = *state;

    manage(f, "POST /models?url=one&initial_workers=1&synchronous=true", 200, "registered");
    manage(f, "POST /models?url=one", 409, "ConflictStatusException");
    manage(f, "POST /models?url=two&model_name=one&model_version=2.0", 200, "Version: 2.0");
    manage(f, "POST /models?url=three&initial_workers=1", 202, "Processing worker updates");
    manage(f, "GET /models", 200, "\"modelName\": \"three\"");
    manage(f, "GET /models?limit=1", 200, "\"nextPageToken\": \"1\"");
    manage(f, "GET /models?limit=1&next_page_token=1", 200, "\"modelName\": \"three\"");
    manage(f, "GET /models?limit=x", 403, "IllegalArgumentException");
    manage(f, "GET /models/one", 200, "\"modelVersion\": \"1.0\"");
    manage(f, "GET /models/one/2.0", 200, "\"minWorkers\": 0");
    manage(f, "GET /models/one/all", 200, "\"modelUrl\": \"two\"");
    manage(f, "GET /models/none", 404, "ModelNotFoundException");
    manage(f, "GET /models/none/all", 404, "ModelNotFoundException");
    manage(f, "PUT /models/one?min_worker=2&max_worker=1", 400, "max_worker");
    manage(f, "PUT /models/one?min_worker=many", 403, "min_worker");
    manage(f, "PUT /models/one?min_worker=9999", 403, "min_worker");
    manage(f, "PUT /models/one/2.0?min_worker=1", 202, "Processing");
    manage(f, "PUT /models/one/3.0/set-default", 404, "ModelVersionNotFoundException");
    manage(f, "PUT /models/one/2.0/set-default", 200, "to \\\"2.0\\\"");
    manage(f, "DELETE /models/one", 403, "InvalidModelVersionException");
    manage(f, "DELETE /models/one/1.0", 200, "unregistered");
    manage(f, "DELETE /models/one", 200, "unregistered");
    manage(f, "DELETE /models/one", 404, "ModelNotFoundException");
    manage(f, "GET /api-description", 200, "set-default");
}

static void test_register_refused(void **state)
{
    struct fixture *f = *state;

    manage(f, "POST /models", 400, "Parameter url is required");
    manage(f, "POST /models?url=http://127.0.0.1/x.mar", 403, "never from a URL");
    manage(f, "POST /models?url=..%2F..%2Fetc", 404, "leads out");
    manage(f, "POST /models?url=nothing", 404, "ModelNotFoundException");
    manage(f, "POST /models?url=one&model_name=a/b", 400, "no model's name");
    manage(f, "POST /models?url=one&model_name=..", 400, "no model's name");
    manage(f, "POST /models?url=one&model_version=%2e", 400, "no model's name or version");
    manage(f, "POST /models?url=one&batch_size=0", 403, "batch_size");
    manage(f, "POST /models?url=one&initial_workers=1000", 403, "initial_workers");
    manage(f, "POST /models?url=one&handler=evil.py:run", 400, "unknown handler");
    manage(f, "GET /models", 200, "\"models\": []");
}

/* Closed without a word, as by kill -9, and opened again. */
static void test_state(void **state)
{
    struct fixture *f = *state;

    manage(f,
           "POST /models?url=one&initial_workers=2&batch_size=3&handler=image_classifier"
           "&synchronous=true",
           200, "");
    manage(f,
           "POST /models?url=two&model_name=one&model_version=2.0&initial_workers=1"
           "&synchronous=true",
           200, "");
    manage(f, "PUT /models/one/2.0/set-default", 200, "");
    manage(f, "POST /models?url=three", 200, "");
    manage(f, "DELETE /models/three", 200, "");
    close_serve(f);
    open_serve(f);
    manage(f, "GET /models/one", 200, "\"modelVersion\": \"2.0\"");
    manage(f, "GET /models/one/1.0", 200, "\"batchSize\": 3");
    manage(f, "GET /models/one/1.0", 200, "\"minWorkers\": 2");
    manage(f, "GET /models/one/1.0", 200, "\"handler\": \"image\"");
    manage(f, "GET /models/three", 404, "");
    expect(f, SERVE_INFERENCE, "POST /predictions/one", sample, 200, "\"a\"");
}

static void test_bad_state(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{\"schema\":2,\"models\":[]}",
        "{\"schema\":1}",
        "{\"schema\":1,\"models\":[{\"name\":\"x\"}]}",
        "{\"schema\":1,\"models\":[{\"name\":\"x\",\"version\":\"1\",\"url\":\"x\",\"batch_size\":"
        "-1,\"max_batch_delay\":0,\"response_timeout\":1,\"min_workers\":1,\"max_workers\":1}]}"};
    struct fixture *f = *state;
    char *path = base_format("%s/state.json", f->scratch);

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct serve_setup setup = {.state = path};
        struct serve serve = {.setup = &setup};

        assert_int_equal(base_file_replace(path, bad[i], strlen(bad[i])), BASE_OK);
        assert_int_equal(serve_state_open(&serve), BASE_ERR_DATA);
        assert_non_null(strstr(base_message(), path));
        json_decref(serve.state);
        base_free(serve.state_path);
    }
    base_free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_predict, start, stop),
        cmocka_unit_test_setup_teardown(test_v2, start, stop),
        cmocka_unit_test_setup_teardown(test_batch, start, stop),
        cmocka_unit_test_setup_teardown(test_full_and_late, start, stop),
        cmocka_unit_test_setup_teardown(test_no_worker, start, stop),
        cmocka_unit_test_setup_teardown(test_unregister, start, stop),
        cmocka_unit_test(test_without_weights),
        cmocka_unit_test_setup_teardown(test_replace, start, stop),
        cmocka_unit_test_setup_teardown(test_replace_while_filling, start, stop),
        cmocka_unit_test_setup_teardown(test_manage, start, stop),
        cmocka_unit_test_setup_teardown(test_register_refused, start, stop),
        cmocka_unit_test_setup_teardown(test_state, start, stop),
        cmocka_unit_test_setup_teardown(test_bad_state, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
