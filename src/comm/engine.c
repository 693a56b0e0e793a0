/* SPDX-License-Identifier: MIT
 *
 * The engine's thread. It runs orders, and between them waits in the transports for the messages
 * that are under way; with neither it waits for `more`. Other threads only touch the inbox, under
 * the lock. A task that comes while the thread is in a transport's sleep wakes it
 * (comm_group_wake); one that comes while it runs an order is found by the order's own waits, which
 * look at `group->called` once a turn (comm_group_turn).
 */
#include "comm/engine.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "comm/comm_private.h"

struct list {
    struct comm_task *first, *last;
};

struct comm_engine {
    struct comm_group *group;
    struct base_thread thread;
    struct base_mutex lock;
    struct base_signal more, less; /* the thread has something to do; a task has ended */
    /* Under `lock`: */
    struct list inbox;
    bool idle, ends; /* the thread waits for `more`; comm_engine_end was called */
    int polls;       /* threads in comm_engine_poll */
    bool cut_short;  /* comm_engine_end came while messages were under way */
    base_status failure;
    char message[256];
    /* Used by the engine's thread alone: */
    struct list orders, messages; /* orders to run; messages under way */
    bool ending;                  /* `ends` was seen: the inbox stays empty */
};

static _Thread_local const struct comm_engine *here;

static void append(struct list *list, struct comm_task *task)
{
    task->next = NULL;
    if (list->first == NULL)
        list->first = task;
    else
        list->last->next = task;
    list->last = task;
}

static struct comm_task *pop(struct list *list)
{
    struct comm_task *task = list->first;

    if (task != NULL)
        list->first = task->next;
    return task;
}

/* --- the thread ---------------------------------------------------------------------------- */

/* Called with the lock held. The task's owner may free it at once. */
static void end_task(struct comm_task *task, base_status status)
{
    task->status = status;
    atomic_store_explicit(&task->ended, true, memory_order_release);
}

/* Empties the inbox: orders wait for their turn, messages begin to move. */
static void take(struct comm_engine *e)
{
    struct list inbox;

    base_mutex_lock(&e->lock);
    inbox = e->inbox;
    e->inbox = (struct list){0};
    e->ending = e->ends;
    atomic_store(&e->group->called, false);
    base_mutex_unlock(&e->lock);
    for (struct comm_task *task; (task = pop(&inbox)) != NULL;) {
        append(task->run != NULL ? &e->orders : &e->messages, task);
        if (task->run == NULL) {
            e->group->messages++;
            comm_group_post(e->group, &task->request);
        }
    }
}

/* Ends the messages that are done. */
static void end_messages(struct comm_engine *e)
{
    struct list left = {0}, done = {0};

    for (struct comm_task *task; (task = pop(&e->messages)) != NULL;)
        append(task->request.done ? &done : &left, task);
    e->messages = left;
    if (done.first == NULL)
        return;
    base_mutex_lock(&e->lock);
    for (struct comm_task *task; (task = pop(&done)) != NULL; e->group->messages--)
        end_task(task, BASE_OK);
    base_mutex_unlock(&e->lock);
    base_signal_wake(&e->less);
}

bool comm_engine_turn(struct comm_engine *e, bool moved)
{
    const bool called = atomic_load_explicit(&e->group->called, memory_order_relaxed);
    const uint32_t newest = comm_group_newest(e->group);

    if (called)
        take(e);
    if ((called || moved) && e->messages.first != NULL)
        end_messages(e);
    if (newest > e->group->newest_passed_on) {
        base_mutex_lock(&e->lock);
        base_signal_wake(&e->less); /* comm_engine_poll returns for it */
        base_mutex_unlock(&e->lock);
        e->group->newest_passed_on = newest;
    }
    return called;
}

/* Runs the next order. An order that fails ends the group, because the ranks no longer agree about
 * what they do. The group may also have ended in a wait whose failure the order did not return. */
static base_status run_order(struct comm_engine *e)
{
    struct comm_task *task = e->orders.first;
    base_status st = task->run(task->context);

    if (st != BASE_OK) {
        e->group->failure = e->group->failure != BASE_OK ? e->group->failure : st;
        return st; /* fail_all ends the task, too */
    }
    pop(&e->orders);
    base_mutex_lock(&e->lock);
    end_task(task, BASE_OK);
    base_mutex_unlock(&e->lock);
    base_signal_wake(&e->less);
    return comm_group_ended(e->group);
}

/* Waits until all messages have ended, unless there is something else to do. */
static base_status move_messages(struct comm_engine *e)
{
    base_status st = BASE_OK;
    bool moved;

    while (e->messages.first != NULL && e->orders.first == NULL && !e->ending) {
        TRY(comm_group_turn(e->group, &moved));
        if (!moved)
            comm_group_rest(e->group, INFINITY);
    }
out:
    return st == BASE_OK ? st : comm_group_give_up(e->group, st, INFINITY);
}

/* Sleeps on the bell: a newer view rings it, and a thread in comm_engine_poll waits to hear of one.
 */
static void wait_for_newer_view(struct comm_engine *e)
{
    struct pollfd bell;

    comm_endpoint_hush(e->group->endpoint);
    if (!comm_engine_turn(e, false))
        comm_group_doze(e->group, &bell, 1, 3600);
}

static void wait_for_task(struct comm_engine *e)
{
    base_mutex_lock(&e->lock);
    while (e->inbox.first == NULL && !e->ends && e->polls == 0) {
        e->idle = true;
        base_signal_wait(&e->more, &e->lock, INFINITY);
        e->idle = false;
    }
    base_mutex_unlock(&e->lock);
    if (!atomic_load(&e->group->called))
        wait_for_newer_view(e);
}

static base_status work(struct comm_engine *e)
{
    base_status st = BASE_OK;

    for (;;) {
        take(e);
        end_messages(e);
        if (e->orders.first != NULL)
            TRY(run_order(e));
        else if (e->ending)
            break;
        else if (e->messages.first != NULL)
            TRY(move_messages(e));
        else
            wait_for_task(e);
    }
out:
    return st;
}

/* Ends every task with the code `st` and its sentence; later tasks end with them at once. */
static void fail_all(struct comm_engine *e, base_status st)
{
    base_mutex_lock(&e->lock);
    e->failure = st;
    snprintf(e->message, sizeof e->message, "%s", base_message());
    for (struct comm_task *task;
         (task = pop(&e->messages)) != NULL || (task = pop(&e->orders)) || (task = pop(&e->inbox));)
        end_task(task, st);
    base_signal_wake(&e->less);
    base_mutex_unlock(&e->lock);
    e->group->messages = 0;
}

static void *serve(void *argument)
{
    struct comm_engine *e = argument;
    base_status st;

    here = e;
    base_thread_prompt();
    st = work(e);
    if (st == BASE_OK &&
        (e->cut_short = e->messages.first != NULL)) /* a transport still has their buffers */
        st = e->group->failure = base_fail(
            BASE_ERR_INTERRUPTED, "the engine of view %u ended while messages were under way",
            e->group->view.number);
    if (st != BASE_OK)
        fail_all(e, st);
    return NULL;
}

/* --- beginning and end --------------------------------------------------------------------- */

static void dismiss(struct comm_engine *e)
{
    e->group->engine = NULL;
    atomic_store(&e->group->called, false);
    base_signal_fini(&e->less);
    base_signal_fini(&e->more);
    base_mutex_fini(&e->lock);
    base_free(e);
}

base_status comm_engine_begin(struct comm_group *group)
{
    struct comm_engine *e;
    base_status st;

    if (group->engine != NULL)
        return base_fail(BASE_ERR_INTERNAL, "the group of view %u has an engine already",
                         group->view.number);
    if ((st = comm_group_ended(group)) != BASE_OK)
        return st;
    e = base_calloc(1, sizeof *e);
    e->group = group;
    base_mutex_init(&e->lock);
    base_signal_init(&e->more);
    base_signal_init(&e->less);
    group->engine = e;
    st = base_thread_start(&e->thread, "engine", serve, e);
    if (st != BASE_OK)
        dismiss(e);
    return st;
}

base_status comm_engine_end(struct comm_group *group)
{
    struct comm_engine *e = group->engine;
    base_status st = BASE_OK;

    if (e == NULL)
        return BASE_OK;
    base_mutex_lock(&e->lock);
    e->ends = true;
    atomic_store(&group->called, true);
    base_signal_wake(&e->more);
    base_mutex_unlock(&e->lock);
    comm_group_wake(group);
    base_thread_join(&e->thread);
    if (e->failure != BASE_OK && !e->cut_short)
        st = base_fail(e->failure, "%s", e->message);
    dismiss(e);
    return st;
}

struct comm_engine *comm_group_engine(const struct comm_group *group)
{
    return group->engine;
}

bool comm_engine_is_here(const struct comm_engine *engine)
{
    return here == engine;
}

/* --- tasks, from any thread ---------------------------------------------------------------- */

static void hand_over(struct comm_engine *e, struct comm_task *task)
{
    bool refused, idle;

    base_mutex_lock(&e->lock);
    refused = e->ends || e->failure != BASE_OK;
    idle = e->idle;
    if (refused) {
        end_task(task, e->failure != BASE_OK ? e->failure : BASE_ERR_INTERRUPTED);
    } else {
        append(&e->inbox, task);
        atomic_store(&e->group->called, true);
    }
    base_mutex_unlock(&e->lock);
    if (idle)
        base_signal_wake(&e->more);
    else if (!refused)
        comm_group_wake(e->group);
}

void comm_engine_send(struct comm_engine *engine, int to, enum comm_channel channel, uint32_t tag,
                      const void *bytes, size_t count, struct comm_task *task)
{
    *task = (struct comm_task){.request = comm_request_send(to, channel, tag, bytes, count)};
    hand_over(engine, task);
}

void comm_engine_receive(struct comm_engine *engine, int from, enum comm_channel channel,
                         uint32_t tag, void *bytes, size_t count, struct comm_task *task)
{
    *task = (struct comm_task){.request = comm_request_receive(from, channel, tag, bytes, count)};
    hand_over(engine, task);
}

void comm_engine_receive_any(struct comm_engine *engine, int from, enum comm_channel channel,
                             void *bytes, size_t room, struct comm_task *task)
{
    *task = (struct comm_task){.request = comm_request_receive_any(from, channel, bytes, room)};
    hand_over(engine, task);
}

void comm_engine_order(struct comm_engine *engine, comm_order *order, void *context,
                       struct comm_task *task)
{
    *task = (struct comm_task){.run = order, .context = context};
    hand_over(engine, task);
}

static bool has_ended(const struct comm_task *task)
{
    return atomic_load_explicit(&task->ended, memory_order_acquire);
}

/* The task's status, with its sentence as the calling thread's message. */
static base_status outcome(struct comm_engine *e, const struct comm_task *task)
{
    base_status st = task->status;

    if (st == BASE_OK)
        return BASE_OK;
    base_mutex_lock(&e->lock);
    st = base_fail(st, "%s", e->failure != BASE_OK ? e->message : "the engine ends");
    base_mutex_unlock(&e->lock);
    return st;
}

static base_status time_is_up(const struct comm_engine *e, const struct comm_task *task)
{
    const struct comm_request *r = &task->request;
    char names[128];

    if (task->run != NULL)
        return base_fail(BASE_ERR_TIMEOUT, "view %u: an operation did not end in time",
                         e->group->view.number);
    comm_group_name(e->group, UINT64_C(1) << r->peer, names, sizeof names);
    return base_fail(BASE_ERR_TIMEOUT, "view %u: a message %s %s did not %s in time",
                     e->group->view.number, r->sends ? "to" : "from", names,
                     r->sends ? "go" : "come");
}

base_status comm_engine_wait(struct comm_engine *engine, struct comm_task *task, double deadline)
{
    if (!has_ended(task) && comm_engine_is_here(engine))
        return base_fail(BASE_ERR_INTERNAL, "an order waits for a task of its own engine");
    if (!has_ended(task)) {
        base_mutex_lock(&engine->lock);
        while (!has_ended(task) && base_now() < deadline)
            base_signal_wait(&engine->less, &engine->lock, deadline);
        base_mutex_unlock(&engine->lock);
    }
    return has_ended(task) ? outcome(engine, task) : time_is_up(engine, task);
}

static int first_ended(struct comm_task *const *tasks, int count)
{
    for (int i = 0; i < count; i++)
        if (tasks[i] != NULL && has_ended(tasks[i]))
            return i;
    return -1;
}

base_status comm_engine_poll(struct comm_engine *engine, struct comm_task *const *tasks, int count,
                             double until, uint32_t known, int *index_p)
{
    base_status st = BASE_OK;

    base_mutex_lock(&engine->lock);
    engine->polls++;
    if (engine->idle)
        base_signal_wake(&engine->more);
    while ((*index_p = first_ended(tasks, count)) < 0 && engine->failure == BASE_OK &&
           base_now() < until && comm_group_newest(engine->group) <= known)
        base_signal_wait(&engine->less, &engine->lock, until);
    engine->polls--;
    if (*index_p < 0 && engine->failure != BASE_OK)
        st = base_fail(engine->failure, "%s", engine->message);
    base_mutex_unlock(&engine->lock);
    return *index_p < 0 ? st : outcome(engine, tasks[*index_p]);
}

void comm_engine_ring(struct comm_engine *engine, struct comm_task *bell)
{
    base_mutex_lock(&engine->lock);
    end_task(bell, BASE_OK);
    base_signal_wake(&engine->less);
    base_mutex_unlock(&engine->lock);
}
