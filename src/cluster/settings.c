/* SPDX-License-Identifier: MIT */
#include "cluster/settings.h"

#include <string.h>

base_status cluster_settings_check(const json_t *values)
{
    const char *name;
    json_t *value;

    if (!json_is_object(values) || json_object_size(values) > CLUSTER_MAX_SETTINGS)
        return base_fail(BASE_ERR_DATA, "settings are not an object of at most %d texts",
                         CLUSTER_MAX_SETTINGS);
    json_object_foreach((json_t *)(uintptr_t)values, name, value)
    {
        const char *text = json_string_value(value);

        if (text == NULL || strlen(text) != json_string_length(value) ||
            strlen(text) >= CLUSTER_SETTING_TEXT || strlen(name) >= CLUSTER_SETTING_TEXT)
            return base_fail(BASE_ERR_DATA,
                             "the setting '%.64s' is not a text of less than %d bytes", name,
                             CLUSTER_SETTING_TEXT);
    }
    return BASE_OK;
}

bool cluster_settings_take(struct cluster_settings *s, uint32_t number, json_t *values)
{
    if (number <= s->number)
        return false;
    json_decref(s->values);
    s->number = number;
    s->values = json_incref(values);
    return true;
}

void cluster_settings_fini(struct cluster_settings *s)
{
    json_decref(s->values);
    *s = (struct cluster_settings){0};
}
