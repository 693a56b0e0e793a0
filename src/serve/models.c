/* SPDX-License-Identifier: MIT */
#include "serve/models.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct entry {
    struct serve_version *version;
    bool is_default;
};

struct serve_models {
    pthread_mutex_t lock;
    pthread_cond_t released;
    struct entry *entries; /* by name, then in the order of registration */
    size_t count;
};

struct serve_models *serve_models_new(void)
{
    struct serve_models *models = base_calloc(1, sizeof *models);

    pthread_mutex_init(&models->lock, NULL);
    pthread_cond_init(&models->released, NULL);
    return models;
}

void serve_models_free(struct serve_models *models)
{
    if (models == NULL)
        return;
    for (size_t i = 0; i < models->count; i++)
        serve_version_free(models->entries[i].version);
    pthread_cond_destroy(&models->released);
    pthread_mutex_destroy(&models->lock);
    base_free(models->entries);
    base_free(models);
}

bool serve_is_name(const char *text)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    return text[0] != '\0' && text[0] != '.' && strlen(text) <= 128 &&
           strspn(text, allowed) == strlen(text);
}

struct serve_version *serve_models_find(struct serve_models *models, const char *name,
                                        const char *version, bool *known_p)
{
    struct serve_version *found = NULL;

    *known_p = false;
    pthread_mutex_lock(&models->lock);
    for (size_t i = 0; i < models->count; i++) {
        struct entry *e = &models->entries[i];

        if (strcmp(e->version->name, name) != 0)
            continue;
        *known_p = true;
        if (version == NULL ? e->is_default : strcmp(e->version->version, version) == 0)
            found = e->version;
    }
    if (found != NULL)
        found->refs++;
    pthread_mutex_unlock(&models->lock);
    return found;
}

void serve_models_release(struct serve_models *models, struct serve_version *version)
{
    if (version == NULL)
        return;
    pthread_mutex_lock(&models->lock);
    version->refs--;
    pthread_cond_broadcast(&models->released);
    pthread_mutex_unlock(&models->lock);
}

void serve_models_add(struct serve_models *models, struct serve_version *version)
{
    size_t at = 0;
    bool known = false;

    pthread_mutex_lock(&models->lock);
    for (; at < models->count; at++) {
        int order = strcmp(models->entries[at].version->name, version->name);

        if (order > 0)
            break;
        known |= order == 0;
    }
    models->entries = base_realloc(models->entries, models->count + 1, sizeof *models->entries);
    memmove(models->entries + at + 1, models->entries + at,
            (models->count - at) * sizeof *models->entries);
    models->entries[at] = (struct entry){version, !known};
    models->count++;
    pthread_mutex_unlock(&models->lock);
}

void serve_models_remove(struct serve_models *models, struct serve_version *version)
{
    size_t at = 0;

    pthread_mutex_lock(&models->lock);
    while (models->entries[at].version != version)
        at++;
    models->count--;
    memmove(models->entries + at, models->entries + at + 1,
            (models->count - at) * sizeof *models->entries);
    while (version->refs > 1)
        pthread_cond_wait(&models->released, &models->lock);
    pthread_mutex_unlock(&models->lock);
    serve_version_free(version);
}

bool serve_models_set_default(struct serve_models *models, const char *name, const char *version)
{
    bool found = false;

    pthread_mutex_lock(&models->lock);
    for (size_t i = 0; i < models->count; i++)
        found |= strcmp(models->entries[i].version->name, name) == 0 &&
                 strcmp(models->entries[i].version->version, version) == 0;
    for (size_t i = 0; found && i < models->count; i++)
        if (strcmp(models->entries[i].version->name, name) == 0)
            models->entries[i].is_default =
                strcmp(models->entries[i].version->version, version) == 0;
    pthread_mutex_unlock(&models->lock);
    return found;
}

struct serve_version **serve_models_list(struct serve_models *models, bool defaults,
                                         size_t *count_p)
{
    struct serve_version **list;
    size_t count = 0;

    pthread_mutex_lock(&models->lock);
    list = base_calloc(models->count + 1, sizeof *list);
    for (size_t i = 0; i < models->count; i++)
        if (!defaults || models->entries[i].is_default) {
            models->entries[i].version->refs++;
            list[count++] = models->entries[i].version;
        }
    pthread_mutex_unlock(&models->lock);
    *count_p = count;
    return list;
}

bool serve_models_is_default(struct serve_models *models, const struct serve_version *version)
{
    bool is = false;

    pthread_mutex_lock(&models->lock);
    for (size_t i = 0; i < models->count; i++)
        is |= models->entries[i].version == version && models->entries[i].is_default;
    pthread_mutex_unlock(&models->lock);
    return is;
}
