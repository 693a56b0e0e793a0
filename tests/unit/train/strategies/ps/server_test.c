/* SPDX-License-Identifier: MIT
 *
 * What server 0 makes of messages, without a network: the worker is the one of its own process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "train/strategies/ps/server_private.h"

enum { WORKERS = 3, SERVERS = 2, BATCH = 24, SAMPLES = 240 };

static void begin(struct ps_server *v)
{
    *v = (struct ps_server){.size = WORKERS,
                            .servers = SERVERS,
                            .progress = {.batch = BATCH},
                            .sequencer = {.workers = WORKERS}};
    base_mutex_init(&v->lock);
    base_signal_init(&v->changed);
    ps_ledger_init(&v->progress.ledger, 0, SAMPLES);
    ps_sequencer_init(&v->sequencer, BATCH, 0, SAMPLES, NULL, 0);
}

static void end(struct ps_server *v)
{
    base_signal_fini(&v->changed);
    base_mutex_fini(&v->lock);
}

/* The job diverges while one of two servers has a worker's push: the worker is sent home when the
 * second one has it, too, whichever of them is first. */
static void test_diverged_between(void **state)
{
    struct ps_server v;

    (void)state;
    begin(&v);
    v.sequencer.of[0].work = TRAIN_WORKS;
    ps_server_take_got(&v, 0, PS_ACCEPTED);
    assert_false(v.answered);
    v.diverged = true;
    ps_server_take_got(&v, 0, PS_ACCEPTED);
    assert_true(v.answered);
    assert_true(v.answer.over && v.answer.diverged);
    assert_int_equal(v.sequencer.of[0].work, TRAIN_LEFT);
    end(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_diverged_between),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
