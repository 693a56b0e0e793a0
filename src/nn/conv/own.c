/* SPDX-License-Identifier: MIT */
#include "nn/conv/own.h"

#include <assert.h>

#include "base/mem.h"
#include "base/team.h"
#include "nn/simd/simd.h"
#include "nn/threads.h"

struct state {
    const struct nn_simd_conv *kernels;
    struct nn_conv_shape shape;
    int threads; /* that the scratch was made for */
};

base_status nn_ownconv_open(const struct nn_simd_conv *kernels, const struct nn_conv_shape *shape,
                            size_t *scratch_bytes_p, void **state_p)
{
    struct state *s = base_calloc(1, sizeof *s);

    *s = (struct state){kernels, *shape, nn_threads()};
    *scratch_bytes_p = kernels->scratch(shape, s->threads);
    *state_p = s;
    return BASE_OK;
}

void nn_ownconv_close(void *state)
{
    base_free(state);
}

base_status nn_ownconv_forward(void *state, int n, const float *x, const float *w, const float *b,
                               float *y, void *scratch)
{
    const struct state *s = state;

    s->kernels->forward(&s->shape, s->threads, n, x, w, b, y, scratch);
    return BASE_OK;
}

base_status nn_ownconv_backward(void *state, int n, const float *x, const float *dy, const float *w,
                                float *dw, float *db, float *dx, void *scratch)
{
    const struct state *s = state;

    s->kernels->backward(&s->shape, s->threads, n, x, dy, w, dw, db, dx, scratch);
    return BASE_OK;
}

base_status nn_ownconv_forward_relu(void *state, int n, const float *x, const float *w,
                                    const float *b, float *y, void *scratch)
{
    const struct state *s = state;

    s->kernels->forward_relu(&s->shape, s->threads, n, x, w, b, y, scratch);
    return BASE_OK;
}

base_status nn_ownconv_backward_relu(void *state, int n, const float *x, const float *y,
                                     const float *dy, float *dw, float *db, void *scratch)
{
    const struct state *s = state;

    s->kernels->backward_relu(&s->shape, s->threads, n, x, y, dy, dw, db, scratch);
    return BASE_OK;
}

base_status nn_ownconv_answer(void *state, struct base_team *team, int n, const float *x,
                              const float *prepared, const float *b,
                              const struct nn_conv_tail *tail, float *y, void *scratch)
{
    const struct state *s = state;

    assert(base_team_threads(team) == s->threads);
    s->kernels->answer(&s->shape, team, n, x, prepared, b, tail, y, scratch);
    return BASE_OK;
}

const char *nn_ownconv_implementation(const void *state)
{
    (void)state;
    return nn_simd()->name;
}

bool nn_ownconv_winograd_serves(const struct nn_conv_shape *s, int stride)
{
    return s->kernel[0] == 3 && s->kernel[1] == 3 && s->stride[0] == stride &&
           s->stride[1] == stride && s->pad[0] <= 1 && s->pad[1] <= 1 && s->groups == 1 &&
           !s->in.planar;
}

int nn_ownconv_tiles(const struct nn_conv_shape *shape, int m)
{
    return ((shape->out.h + m - 1) / m) * ((shape->out.w + m - 1) / m);
}
