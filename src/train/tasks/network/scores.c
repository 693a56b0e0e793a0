/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "data/trigger.h"
#include "train/backdoor.h"
#include "train/evaluate.h"
#include "train/tasks/network/network.h"

size_t network_score_count(const struct train_session *s)
{
    return train_tally_numbers(((const struct network *)s->work)->info);
}

static base_status network_score_stages(void *context, const struct data_batch *b,
                                        struct train_tally *tally)
{
    struct train_session *s = context;

    return s->strategy->stages->score(s, b, tally);
}

base_status network_score(struct train_session *s, enum data_part part, struct data_share share,
                          double *score)
{
    struct network *n = s->work;
    struct train_tally tally;
    base_status st;

    train_tally_init(&tally, n->info);
    if (n->stages != NULL) {
        st = train_evaluate_by((struct train_pass){network_score_stages, s}, n->samples.set, part,
                               network_share(s), n->piece * (int)n->stages->pieces(s->options),
                               false, &tally, &s->clock, NULL);
    } else {
        network_find_weights(s);
        st = train_evaluate(n->net, n->samples.set, part, share, n->piece, n->lends.weights, &tally,
                            &s->clock, NULL);
    }
    s->data_failed = st == BASE_ERR_DATA || st == BASE_ERR_IO;
    train_tally_pack(&tally, score);
    train_tally_fini(&tally);
    return st;
}

void network_score_text(const struct train_session *s, const double *score, struct base_str *text)
{
    struct train_tally tally;

    train_tally_unpack(&tally, ((const struct network *)s->work)->info, score);
    train_tally_line(&tally, text);
    base_str_add(text, " (%llu samples)\n", (unsigned long long)train_tally_count(&tally));
    train_tally_text(&tally, text);
    train_tally_fini(&tally);
}

json_t *network_score_json(const struct train_session *s, const double *score)
{
    struct train_tally tally;
    json_t *json;

    train_tally_unpack(&tally, ((const struct network *)s->work)->info, score);
    json = train_tally_json(&tally);
    train_tally_fini(&tally);
    return json;
}

/* Of a run that is attacked by a backdoor: how often the last weights open it. */
void network_result(const struct train_session *s, json_t *result)
{
    const struct network *n = s->work;
    const struct train_attack *attack = train_attackers_backdoor(&s->attackers);
    struct train_backdoor backdoor = {0};

    if (attack == NULL || !train_team_leads(&s->team) || n->net == NULL || s->count[DATA_TEST] == 0)
        return;
    nn_net_weights_at(n->net, s->state.weights);
    if (train_backdoor_measure(n->net, n->samples.set, DATA_TEST, n->net_piece,
                               data_trigger_find(attack->trigger), attack->target,
                               &backdoor) == BASE_OK)
        json_object_set_new(result, "backdoor", train_backdoor_json(&backdoor));
    else
        base_warn("the backdoor is not measured: %s", base_message());
    train_backdoor_fini(&backdoor);
}

const struct train_grade *network_grade(const struct train_session *s)
{
    return train_tally_grade(((const struct network *)s->work)->info);
}

double network_graded(const struct train_session *s, const double *score)
{
    struct train_tally tally;
    double value;

    train_tally_unpack(&tally, ((const struct network *)s->work)->info, score);
    value = train_tally_value(&tally);
    train_tally_fini(&tally);
    return value;
}
