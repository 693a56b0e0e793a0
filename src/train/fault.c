/* SPDX-License-Identifier: MIT */
#include "train/fault.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/thread.h"

static base_status find_stall(struct train_fault *fault)
{
    const char *text = getenv("PACELINE_STALL");
    int used = 0;

    if (text == NULL)
        return BASE_OK;
    if (sscanf(text, "%lf:%lf%n", &fault->stall_probability, &fault->stall_seconds, &used) != 2 ||
        text[used] != '\0' || !(fault->stall_seconds >= 0))
        return base_fail(BASE_ERR_USAGE, "PACELINE_STALL is '%s', not PROBABILITY:SECONDS", text);
    return BASE_OK;
}

/* Is it one of "2" or "2,3"? *rest_p: what follows the list. */
static bool is_victim(const char *text, uint32_t id, const char **rest_p)
{
    bool found = false;
    uint32_t victim;
    int used = 0;

    while (sscanf(text, "%" SCNu32 "%n", &victim, &used) == 1) {
        found |= victim == id;
        text += used;
        if (*text != ',')
            break;
        text++;
    }
    *rest_p = text;
    return found && id != 0;
}

base_status train_fault_find(uint32_t id, struct train_fault *fault_p)
{
    const char *text = getenv("PACELINE_FAULT"), *rest;
    bool victim;
    int used = 0;
    base_status st;

    *fault_p = (struct train_fault){.signal = SIGKILL, .reads = getenv("PACELINE_READS"), .id = id};
    if ((st = find_stall(fault_p)) != BASE_OK || text == NULL)
        return st;
    victim = is_victim(text, id, &rest);
    if (rest == text ||
        sscanf(rest, ":%23[a-z0-9-]:%" SCNd64 "%n", fault_p->phase, &fault_p->step, &used) != 2)
        used = 0;
    rest += used;
    fault_p->later = used > 0 && *rest == '+';
    rest += fault_p->later;
    if (used > 0 && strcmp(rest, ":STOP") == 0)
        fault_p->signal = SIGSTOP;
    else if (used == 0 || *rest != '\0')
        return base_fail(BASE_ERR_USAGE,
                         "PACELINE_FAULT is '%s', not ID[,ID…]:PHASE:STEP[+][:STOP]", text);
    fault_p->armed = victim;
    return BASE_OK;
}

bool train_fault_hits(const struct train_fault *fault, const char *phase, int64_t step)
{
    return fault->armed && (fault->step == step || (fault->later && fault->step < step)) &&
           strcmp(fault->phase, phase) == 0;
}

void train_fault_at(const struct train_fault *fault, const char *phase, int64_t step)
{
    if (train_fault_hits(fault, phase, step))
        raise(fault->signal);
}

void train_fault_nth(const struct train_fault *fault, const char *phase, int n, int64_t step)
{
    char name[sizeof fault->phase];

    if (!fault->armed)
        return;
    snprintf(name, sizeof name, "%s-%d", phase, n);
    train_fault_at(fault, name, step);
}

void train_fault_stall(const struct train_fault *fault, uint64_t n)
{
    struct base_rng rng;
    uint32_t words[4];

    if (fault->stall_probability <= 0)
        return;
    rng = base_rng_of(fault->id, BASE_STREAM_SHUFFLE, 0, 0, 0);
    base_rng_block(&rng, (uint32_t)n, words);
    if (words[0] < fault->stall_probability * 4294967296.0)
        base_sleep_until(base_now() + fault->stall_seconds);
}
