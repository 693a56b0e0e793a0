/* SPDX-License-Identifier: MIT
 *
 * After a leg that ended half-way: the servers that are left find out together which entries of the
 * log were made, each completes what it lacks, and every worker learns whether its last push is in
 * the weights.
 */
#include <string.h>

#include "base/mem.h"
#include "train/strategies/ps/ps.h"

static void ps_add_claim(struct train_session *s, enum train_group group, size_t from, size_t count)
{
    s->state.claims.at[s->state.claims.count++] = (struct train_hold){
        .group = group, .from = from, .count = count, .version = train_state_version(&s->state)};
}

/* What this worker has that counts. A server has its slices, if it is `current`; statistics are
 * there on every worker. */
static void ps_claim(struct train_session *s, bool current)
{
    const struct ps *p = s->strategy_state;
    uint64_t size[TRAIN_GROUPS];

    train_state_sizes(&s->state, size);
    s->state.claims.count = 0;
    ps_add_claim(s, TRAIN_STATISTICS, 0, size[TRAIN_STATISTICS]);
    for (int i = 0; p->serves && current && i < p->server.slice_count; i++)
        for (enum train_group g = TRAIN_WEIGHTS; g <= TRAIN_SLOTS; g++)
            ps_add_claim(s, g, p->server.slices[i].from, p->server.slices[i].count);
}

/* Whether the push that has no answer is in the log is known now. */
static void ps_resolve(struct train_session *s, const struct train_progress *progress)
{
    struct ps *p = s->strategy_state;

    if (!p->computing)
        return;
    p->computing = false;
    ps_parcel_settle(&p->parcel, progress->pushes[p->rank] == p->clock);
    if (progress->pushes[p->rank] == p->clock) {
        s->samples += p->outline.block.count;
        return;
    }
    s->team.exchange.step = p->step_number;
    s->task->undo(s);
}

void ps_close_server(struct ps *p)
{
    if (p->serves) {
        p->told_of = p->server.told_of;
        ps_server_close(&p->server);
    }
    p->serves = false;
}

void ps_fail(struct train_session *s, base_status st)
{
    struct ps *p = s->strategy_state;
    bool alone = s->team.exchange.size == 1;

    if (p->serves)
        ps_server_abandon(&p->server);
    if (!alone)
        base_ignore(comm_engine_end(s->team.group)); /* why it failed is known */
    if (st == BASE_ERR_PEER_LOST)
        train_clock_lost(&s->clock, &p->told_clock);
    else
        train_clock_enter(&s->clock, TRAIN_COMPUTE);
    if (!p->dirty) /* the state is the meeting's, whole */
        return;
    s->reached = p->client.answer.step; /* servers alone have its weights */
    if (p->computing && !p->pushed) {
        s->task->undo(s);
        p->computing = false;
    }
    if (p->serves)
        ps_server_land(&p->server);
    if (!alone) {
        ps_claim(s, true);
        return;
    }
    ps_resolve(s, &p->server.progress);
    p->dirty = false;
    ps_close_server(p);
}

/* What this server knows of the log, entry after entry: base_free. */
static uint8_t *ps_encode_log(const struct ps *p, size_t *count_p)
{
    struct train_log_entry *known;
    int entries = ps_server_known(&p->server, &known);
    uint8_t *bytes = base_calloc((size_t)entries + 1, PS_ENTRY_MAX_BYTES);

    *count_p = 0;
    for (int i = 0; i < entries; i++)
        *count_p += ps_entry_encode(&known[i], bytes + *count_p);
    base_free(known);
    return bytes;
}

/* Entries that another server knows. */
static base_status ps_learn(struct ps *p, const uint8_t *bytes, size_t count)
{
    base_status st = BASE_OK;
    struct base_cursor c = base_cursor_of(bytes, count);
    struct train_log_entry entry;

    while (base_cursor_left(&c) > 0) {
        TRY(ps_entry_read(&c, &entry));
        if (!ps_server_is_entry(&p->server, &entry))
            TRY(base_fail(BASE_ERR_DATA, "an entry of the log that is none"));
        ps_server_learn(&p->server, &entry, 1);
    }
out:
    return st;
}

/* Every server learns what any of them knows of the log; `mine`: what this one does. */
static base_status ps_share_logs(struct train_session *s, const struct ps_note *notes,
                                 uint32_t view, const uint8_t *mine)
{
    base_status st = BASE_OK;
    struct ps *p = s->strategy_state;
    int rank = s->team.exchange.rank;
    bool learns = p->dirty && p->serves && p->view == view;
    uint8_t *log = NULL;

    for (int i = 0; i < s->team.exchange.size; i++) {
        size_t count = (size_t)notes[i].log_bytes;

        if (notes[i].view != view || count == 0)
            continue;
        if (count > (size_t)2 * COMM_MAX_WORKERS * PS_ENTRY_MAX_BYTES)
            TRY(base_fail(BASE_ERR_DATA, "a log of %zu bytes", count));
        log = base_calloc(count, 1);
        if (i == rank && mine != NULL) /* then it is: the count is its own */
            memcpy(log, mine, count);
        TRY(train_team_broadcast(&s->team, i, log, count));
        if (learns && i != rank)
            TRY(ps_learn(p, log, count));
        base_free(log);
        log = NULL;
    }
out:
    base_free(log);
    return st;
}

/* Where the samples stand, from a server that has applied every entry. */
static base_status ps_share_progress(struct train_session *s, int source)
{
    base_status st = BASE_OK;
    struct ps *p = s->strategy_state;
    struct train_progress *progress = base_calloc(1, sizeof *progress);

    if (s->team.exchange.rank == source)
        *progress = p->server.progress;
    TRY(train_team_broadcast(&s->team, source, progress, sizeof *progress));
    if (!p->dirty)
        goto out;
    if (!ps_progress_can_be(progress, s->plan.batch, s->count[DATA_TRAIN]))
        TRY(base_fail(BASE_ERR_DATA, "worker %u says that samples are done that cannot be",
                      s->team.view.members[source].id));
    ps_progress_position(progress, &s->state.position);
    p->left_count = ps_progress_spans(progress, p->left);
    s->state.ahead = 0;
    for (int i = 0; i < p->left_count; i++)
        s->state.ahead += p->left[i].count;
    ps_resolve(s, progress);
out:
    base_free(progress);
    return st;
}

/* Every worker's note, by rank. */
static base_status ps_gather_notes(struct train_session *s, const struct ps_note *mine,
                                   struct ps_note notes[COMM_MAX_WORKERS])
{
    base_status st = BASE_OK;
    uint8_t bytes[PS_NOTE_BYTES], all[COMM_MAX_WORKERS][PS_NOTE_BYTES];

    ps_note_encode(mine, bytes);
    TRY(train_team_gather(&s->team, bytes, sizeof bytes, all));
    for (int i = 0; i < s->team.exchange.size; i++)
        TRY(base_prefix(ps_note_decode(all[i], sizeof all[i], &notes[i]), "a note of worker %u",
                        s->team.view.members[i].id));
out:
    return st;
}

/* A loss cut the division of a checkpoint's residual short: the workers that have their part keep
 * it, this one has none, and as on the others nothing is left to divide. */
static void ps_end_division(struct train_session *s, const struct ps_note *notes)
{
    bool divided = false;

    for (int i = 0; i < s->team.exchange.size; i++)
        divided |= notes[i].has_residual;
    if (divided)
        ps_parcel_miss(&((struct ps *)s->strategy_state)->parcel, s);
}

base_status ps_reconcile(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ps *p = s->strategy_state;
    int size = s->team.exchange.size, source = -1;
    struct ps_note mine = {.has_residual = p->parcel.begun}, notes[COMM_MAX_WORKERS] = {0};
    uint8_t *known = NULL;
    size_t count = 0;
    uint32_t view = 0;
    uint64_t applied = 0;

    mine.view = p->dirty ? p->view : 0;
    mine.serves = p->dirty && p->serves;
    if (mine.serves)
        known = ps_encode_log(p, &count);
    mine.log_bytes = count;
    TRY(ps_gather_notes(s, &mine, notes));
    ps_end_division(s, notes);
    for (int i = 0; i < size; i++)
        view = notes[i].view > view ? notes[i].view : view;
    if (view == 0)
        goto out;
    TRY(ps_share_logs(s, notes, view, known));
    mine.applied = p->dirty && p->serves && p->view == view ? p->server.applied : 0;
    TRY(ps_gather_notes(s, &mine, notes));
    for (int i = 0; i < size; i++)
        if (notes[i].view == view && notes[i].serves &&
            (source < 0 || notes[i].applied > applied)) {
            source = i;
            applied = notes[i].applied;
        }
    if (source >= 0)
        TRY(ps_share_progress(s, source));
    if (!p->dirty)
        goto out;
    if (p->serves)
        ps_server_land(&p->server);
    ps_claim(s, p->view == view && mine.applied == applied);
out:
    base_free(known);
    return st;
}

/* The state is agreed on: nothing of the leg is needed any more. A worker that goes by itself, or
 * goes back, may save what it has if that is all of it. */
void ps_settle(struct train_session *s, struct train_version version)
{
    struct ps *p = s->strategy_state;

    if (p->dirty && p->serves)
        ps_resolve(s, &p->server.progress);
    if (version.step < 0)
        ps_parcel_give_up(&p->parcel, s);
    if (!p->dirty)
        return;
    p->unfinished = (struct train_outcome){0};
    if (version.step >= 0) {
        ps_tell(s); /* steps that were completed after the loss */
        if (p->serves && p->server.told.count > 0)
            p->unfinished = p->server.told.at[0].outcome;
    }
    if (version.step < 0 && p->serves && p->server.servers <= 2 &&
        ps_progress_spans(&p->server.progress, p->left) == 0) {
        s->state.claims.count = 0;
        s->state.ahead = 0;
    }
    p->dirty = p->computing = false;
    ps_close_server(p);
}
