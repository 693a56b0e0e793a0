/* covers: src/base/event_reader.c */
/* SPDX-License-Identifier: MIT
 *
 * A line of events: members of one that is taken lie inside it and in its order, and a number is
 * finite or not there.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/event_reader.h"
#include "base/mem.h"

static void check_fields(const struct base_event_line *line)
{
    const char *at = line->text, *end = line->text + line->length;

    for (size_t i = 0; i < line->field_count; i++) {
        const struct base_event_field *f = &line->fields[i];
        double number = base_event_field_number(f);

        if (f->key < at || f->value < f->key + f->key_length || f->value_length == 0)
            abort();
        at = f->value + f->value_length;
        if (at > end || isinf(number))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char *text = base_strndup((const char *)bytes, count);
    struct base_event_line line;
    json_t *json;

    count = strlen(text);
    if (base_event_parse(text, count, &line)) {
        check_fields(&line);
        if (!base_event_is(&line, "step") && base_event_field(&line, "event") == NULL)
            abort();
        json = base_event_json(&line);
        if (json != NULL && !json_is_object(json))
            abort();
        json_decref(json);
    }
    base_free(text);
    return 0;
}
