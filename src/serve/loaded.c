/* SPDX-License-Identifier: MIT */
#include "serve/loaded.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "nn/layer.h"

static base_status load_network(struct serve_loaded *loaded, int batch)
{
    base_status st = BASE_OK;
    const struct nn_node *last;

    TRY(model_load(&loaded->model));
    TRY(model_infer(&loaded->model, batch, &loaded->infer));
    last = nn_graph_node(loaded->model.graph, nn_graph_layers(loaded->model.graph) - 1);
    loaded->outputs = last->out.c;
    loaded->named = loaded->outputs == loaded->model.about.classes;
out:
    return st;
}

base_status serve_loaded_open(const char *place, const char *runs_dir, int batch,
                              struct serve_loaded **loaded_p)
{
    base_status st = BASE_OK;
    struct serve_loaded *loaded = base_calloc(1, sizeof *loaded);

    *loaded_p = NULL;
    atomic_init(&loaded->refs, 1);
    TRY(model_find(place, runs_dir, false, &loaded->model.checkpoint));
    if (recsys_saved_is(loaded->model.checkpoint.manifest))
        TRY(recsys_saved_open(&loaded->model.checkpoint, 1, &loaded->ratings));
    else
        TRY(load_network(loaded, batch));
    *loaded_p = loaded;
    loaded = NULL;
out:
    serve_loaded_unref(loaded);
    return st;
}

/* `text` with every `place` replaced by `label`; base_free. */
static char *replaced(const char *text, const char *place, const char *label)
{
    struct base_str s = {0};
    const char *found;

    for (; (found = strstr(text, place)) != NULL; text = found + strlen(place)) {
        base_str_append(&s, text, (size_t)(found - text));
        base_str_append(&s, label, strlen(label));
    }
    base_str_append(&s, text, strlen(text));
    return base_str_take(&s);
}

void serve_loaded_rename(struct serve_loaded *loaded, const char *place, const char *label)
{
    char *text;

    if (loaded == NULL) {
        text = replaced(base_message(), place, label);
        base_keep_message("%s", text);
    } else {
        text = loaded->model.checkpoint.path;
        loaded->model.checkpoint.path = replaced(text, place, label);
    }
    base_free(text);
}

struct serve_loaded *serve_loaded_ref(struct serve_loaded *loaded)
{
    if (loaded != NULL)
        atomic_fetch_add(&loaded->refs, 1);
    return loaded;
}

void serve_loaded_unref(struct serve_loaded *loaded)
{
    if (loaded == NULL || atomic_fetch_sub(&loaded->refs, 1) > 1)
        return;
    nn_infer_free(loaded->infer);
    recsys_saved_close(loaded->ratings);
    model_close(&loaded->model);
    base_free(loaded);
}
