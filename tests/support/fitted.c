/* SPDX-License-Identifier: MIT */
#include "support/fitted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"

void fitted_open(struct fitted *f, const struct rated *rated, const char *model,
                 const char *options, int threads, uint64_t seed)
{
    char *text = base_format("%s:%s", model, options);
    struct recsys_setup setup = {.scale = &rated->scale,
                                 .by_user = &rated->by_user,
                                 .by_item = &rated->by_item,
                                 .seed = seed};

    assert_int_equal(base_team_new(threads, &f->team), BASE_OK);
    if (recsys_model_find(text, &setup.model, &f->options) != BASE_OK)
        fail_msg("%s: %s", text, base_message());
    setup.options = f->options;
    setup.team = f->team;
    if (recsys_fit_new(&setup, &f->fit) != BASE_OK)
        fail_msg("%s: %s", text, base_message());
    base_free(text);
}

void fitted_train(struct fitted *f)
{
    for (int64_t s = 0; s < f->fit->sweeps; s++)
        assert_int_equal(recsys_sweep(f->fit), BASE_OK);
}

void fitted_close(struct fitted *f)
{
    recsys_fit_free(f->fit);
    base_free(f->options);
    base_team_free(f->team);
}
