/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sim/agent.h"

static const double RETRY = 0.1; /* seconds */

static struct sim_line *lines;

struct sim_plug sim_line_new(struct sim_agent *from, struct sim_agent *to)
{
    struct sim_line *line = base_calloc(1, sizeof *line);

    line->at[0] = from;
    line->at[1] = to;
    for (int end = 0; end < 2; end++)
        line->pipe[end] = (struct sim_pipe){.to = &line->at[!end]->inbox,
                                            .line = line,
                                            .from = !end,
                                            .from_host = line->at[end]->host,
                                            .to_host = line->at[!end]->host};
    line->next = lines;
    lines = line;
    return (struct sim_plug){line, 0};
}

void sim_plug_send(struct sim_plug plug, const struct cluster_message *message)
{
    if (plug.line != NULL && !plug.line->closed[plug.end])
        sim_mail(&plug.line->pipe[plug.end], message);
}

void sim_plug_close(struct sim_plug *plug)
{
    if (plug->line != NULL && !plug->line->closed[plug->end])
        sim_mail(&plug->line->pipe[plug->end], NULL);
    if (plug->line != NULL)
        plug->line->closed[plug->end] = true;
    *plug = (struct sim_plug){0};
}

bool sim_plug_is(struct sim_plug plug, const struct sim_letter *letter)
{
    return plug.line != NULL && plug.line == letter->line && plug.end == letter->from;
}

static struct sim_plug *free_link(struct sim_server *server)
{
    for (int i = 0; i < SIM_LINKS; i++)
        if (server->links[i].line == NULL)
            return &server->links[i];
    return NULL;
}

void sim_server_take_in(struct sim_server *server, struct sim_plug plug)
{
    struct sim_plug *at = free_link(server);

    if (at != NULL)
        *at = plug;
    else
        sim_plug_close(&plug);
}

static void accept_line(struct sim_agent *a, uint32_t from_host, struct sim_plug plug)
{
    if (a->server != NULL) {
        sim_server_take_in(a->server, plug);
    } else {
        sim_plug_close(&a->theirs[from_host]);
        a->theirs[from_host] = plug;
    }
}

enum cluster_dialled sim_dial(struct sim_agent *from, uint32_t from_host, uint16_t port, double *at,
                              struct sim_plug *plug_p)
{
    struct sim_agent *to = sim_agent_at(port);
    double now = base_now();

    if (*at == 0)
        *at = now + 2 * sim_network_delay(from->host, to->host, 0);
    if (now < *at || sim_network_cut_until(from->host, to->host) > 0 ||
        sim_process_is_stalled(to->process))
        return CLUSTER_DIALLING;
    *at = now + RETRY;
    if (to->ended || !sim_process_is_alive(to->process))
        return CLUSTER_REFUSED;
    *plug_p = sim_line_new(from, to);
    accept_line(to, from_host, (struct sim_plug){plug_p->line, 1});
    return CLUSTER_CONNECTED;
}

void sim_lines_break(struct sim_agent *a, double now)
{
    for (struct sim_line *line = lines; line != NULL; line = line->next)
        if (line->at[0] != line->at[1] && (line->at[0] == a || line->at[1] == a) &&
            sim_network_breaks_at(line->at[0]->host, line->at[1]->host) <= now)
            for (int end = 0; end < 2; end++)
                sim_hang_up(&line->pipe[end]);
}

void sim_agent_hang_up(struct sim_agent *a)
{
    for (struct sim_line *line = lines; line != NULL; line = line->next)
        for (int end = 0; end < 2; end++)
            if (line->at[end] == a)
                sim_plug_close(&(struct sim_plug){line, end});
    for (int slot = 0; slot < COMM_MAX_WORKERS; slot++)
        if (a->seats[slot] != NULL)
            sim_mail(&a->seats[slot]->down, NULL);
}
