/* SPDX-License-Identifier: MIT */
#include "train/trace.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "train/session.h"

enum { SPANS = 4096, LINE = 12 << 10 }; /* spans between two meetings; bytes of an event */

/* A stretch between two spans that is shorter is not told. */
static const double SHORT = 5e-6;

const char *const train_doing_names[TRAIN_DOINGS] = {
    [TRAIN_DOING_COMPUTE] = "compute",         [TRAIN_DOING_DATA] = "data",
    [TRAIN_DOING_COMMUNICATE] = "communicate", [TRAIN_DOING_WAIT] = "wait",
    [TRAIN_DOING_UPDATE] = "update",           [TRAIN_DOING_FORWARD] = "forward",
    [TRAIN_DOING_BACKWARD] = "backward",       [TRAIN_DOING_WEIGHTS] = "weights",
};

void train_trace_init(struct train_trace *t)
{
    *t = (struct train_trace){.spans = base_calloc(SPANS, sizeof *t->spans)};
}

void train_trace_fini(struct train_trace *t)
{
    base_free(t->spans);
    *t = (struct train_trace){0};
}

static bool is_idle(enum train_doing doing)
{
    return doing == TRAIN_DOING_WAIT || doing == TRAIN_DOING_COMMUNICATE;
}

/* What is under way ended at `end`. */
static void close_span(struct train_trace *t, double end)
{
    double seconds = end - t->since;

    if (seconds < SHORT && !train_doing_is_of_piece(t->now.doing))
        return;
    if (t->count == SPANS) { /* the whole step goes */
        t->armed = false;
        t->count = t->kept;
        return;
    }
    t->spans[t->count++] = (struct train_trace_span){.began = t->since,
                                                     .seconds = (float)seconds,
                                                     .step = (uint32_t)t->step,
                                                     .doing = (uint16_t)t->now.doing,
                                                     .stage = (uint16_t)t->now.stage,
                                                     .piece = (uint32_t)t->now.piece};
}

void train_trace_begin(struct train_trace *t, int64_t step)
{
    int64_t before = t->step > 0 ? t->step : step - 1; /* a worker may come in mid-run */

    train_trace_end(t);
    t->step = step;
    t->armed = t->spans != NULL && (step <= TRAIN_TRACE_FIRST ||
                                    step / TRAIN_TRACE_EVERY != before / TRAIN_TRACE_EVERY);
    t->now = (struct train_doing_of){.doing = TRAIN_DOING_COMPUTE};
    t->since = t->armed ? base_now() : 0;
}

void train_trace_end(struct train_trace *t)
{
    if (t->armed)
        close_span(t, base_now());
    t->armed = false;
    t->kept = t->count;
}

void train_trace_drop(struct train_trace *t)
{
    t->armed = false;
    t->count = t->kept;
}

void train_trace_back(struct train_trace *t, int64_t step)
{
    int kept = 0;

    for (int i = 0; i < t->kept; i++)
        if (t->spans[i].step <= step)
            t->spans[kept++] = t->spans[i];
    t->armed = false;
    t->count = t->kept = kept;
}

void train_trace_enter(struct train_trace *t, enum train_doing doing)
{
    train_trace_enter_piece(t, doing, 0, 0);
}

void train_trace_enter_piece(struct train_trace *t, enum train_doing doing, int stage, int piece)
{
    double now;

    if (t == NULL || !t->armed)
        return;
    now = base_now();
    close_span(t, now);
    t->now = (struct train_doing_of){doing, stage, piece};
    t->since = now;
}

void train_trace_past(struct train_trace *t, enum train_doing doing, double seconds)
{
    struct train_doing_of was;
    double now, from;

    if (t == NULL || !t->armed)
        return;
    was = t->now;
    now = base_now();
    from = now - seconds > t->since ? now - seconds : t->since;
    close_span(t, from);
    t->now = (struct train_doing_of){.doing = doing};
    t->since = from;
    if (t->armed)
        close_span(t, now);
    t->now = was;
    t->since = now;
}

/* ---- to rank 0 ---- */

/* What a worker says before it sends its spans. */
struct word {
    double now; /* base_now, when all of them have just met */
    int64_t count;
    uint32_t id, host;
};

/* The share of a worker's step in which it waited or communicated. */
static double idle_of(const struct train_trace_span *spans, int count)
{
    double waited = 0, all = spans[count - 1].began + spans[count - 1].seconds - spans[0].began;

    for (int i = 0; i < count; i++)
        waited += is_idle(spans[i].doing) ? spans[i].seconds : 0;
    return all > 0 ? waited / all : 0;
}

static void add_span(struct base_str *text, const struct train_trace_span *span, double from)
{
    base_str_add(text, "%s[\"%s\",%.1f,%.1f", text->length > 0 ? "," : "",
                 train_doing_names[span->doing], 1e6 * (span->began - from), 1e6 * span->seconds);
    if (train_doing_is_of_piece(span->doing))
        base_str_add(text, ",%u,%u", span->stage, span->piece);
    base_str_add(text, "]");
}

/* The spans of one step, in as many events as the lines' length asks for. */
static void tell_step(struct train_session *s, const struct word *word, int rank, double offset,
                      const struct train_trace_span *spans, int count)
{
    double idle = idle_of(spans, count);
    struct base_str text = {0};

    for (int i = 0; i < count; i++) {
        if (spans[i].doing < TRAIN_DOINGS)
            add_span(&text, &spans[i], spans[0].began);
        if (text.length < LINE && i + 1 < count)
            continue;
        base_event(s->journal.events,
                   "{\"event\":\"trace\",\"step\":%u,\"worker\":%u,\"rank\":%d,\"idle\":%.4f,"
                   "\"at\":%.7f,\"spans\":[%s]}",
                   spans[0].step, word->id, rank, idle, spans[0].began + offset, text.text);
        base_str_fini(&text);
    }
    base_str_fini(&text);
}

static void tell_worker(struct train_session *s, const struct word *word, int rank, double offset,
                        const struct train_trace_span *spans)
{
    for (int64_t at = 0, end; at < word->count; at = end) {
        for (end = at + 1; end < word->count && spans[end].step == spans[at].step; end++)
            ;
        tell_step(s, word, rank, offset, spans + at, (int)(end - at));
    }
    base_events_flush(s->journal.events);
}

/* Spans go to rank 0 only, which has room for those of one worker at a time. */
static base_status collect(struct train_session *s, const struct word *words)
{
    base_status st = BASE_OK;
    const struct train_exchange *x = &s->team.exchange;
    struct train_trace_span *room = NULL;
    const size_t floats = sizeof *room / sizeof(float);

    if (x->rank != 0) {
        struct train_message message = {0, true, (float *)s->trace.spans,
                                        (size_t)s->trace.count * floats};

        if (s->trace.count > 0)
            TRY(train_team_pass(&s->team, &message, 1));
        goto out;
    }
    TRY(base_tensor(SPANS, sizeof *room, "spans of a worker", &room));
    tell_worker(s, &words[0], 0, 0, s->trace.spans);
    s->trace.count = s->trace.kept = 0; /* they are told, also if another worker is lost now */
    for (int rank = 1; rank < x->size; rank++) {
        struct train_message message = {rank, false, (float *)room,
                                        (size_t)words[rank].count * floats};

        if (words[rank].count < 0 || words[rank].count > SPANS)
            TRY(base_fail(BASE_ERR_DATA, "rank %d has %lld spans to tell of", rank,
                          (long long)words[rank].count));
        if (words[rank].count > 0)
            TRY(train_team_pass(&s->team, &message, 1));
        /* The workers of a host have one clock. Those of others are set by the meeting. */
        tell_worker(s, &words[rank], rank,
                    words[rank].host == words[0].host ? 0 : words[0].now - words[rank].now, room);
    }
out:
    base_free(room);
    return st;
}

base_status train_trace_gather(struct train_session *s)
{
    base_status st = BASE_OK;
    const struct train_exchange *x = &s->team.exchange;
    struct word *words = base_calloc((size_t)x->size, sizeof *words), mine = {0};

    train_trace_end(&s->trace);
    TRY(train_team_gather(&s->team, &mine, sizeof mine, words));
    mine = (struct word){.now = base_now(),
                         .count = s->trace.count,
                         .id = train_team_id(&s->team),
                         .host = x->size > 1 ? s->team.view.members[x->rank].host : 0};
    TRY(train_team_gather(&s->team, &mine, sizeof mine, words));
    TRY(collect(s, words));
    s->trace.count = s->trace.kept = 0;
out:
    base_free(words);
    return st;
}
