/* SPDX-License-Identifier: MIT
 *
 * Finds groups of layers that a fused one can stand for, the longest first. Layers are fused only
 * when they follow each other in the model's text, so a `save`, `add` or `load` in between, which
 * needs the tensor there, keeps them apart. No state; any thread.
 */
#include "nn/fuse.h"

#include <string.h>

/* The number of nodes that the fused layer stands for from here on, at most `room`, or 0. */
static int match(const struct nn_fused *fused, const struct nn_node *nodes, int room)
{
    const char *name = fused->layer.name;
    int count = 0;

    for (;; name++) {
        size_t length = strcspn(name, "+");
        const struct nn_node *node = &nodes[count];

        if (count == room || node->identity || strlen(node->layer->name) != length ||
            strncmp(node->layer->name, name, length) != 0)
            return 0;
        if (count > 0 && (node->params > 0 || node->stats > 0))
            return 0; /* the group's node has the tensors of its first */
        count++;
        name += length;
        if (*name == '\0')
            break;
    }
    return fused->fits == NULL || fused->fits(nodes) ? count : 0;
}

static const struct nn_fused *longest(const struct nn_node *nodes, int room, int *count_p)
{
    const struct nn_fused *found = NULL;

    *count_p = 0;
    for (size_t i = 0; i < nn_fused_count; i++) {
        int count = match(nn_fused_registry[i], nodes, room);

        if (count > *count_p) {
            found = nn_fused_registry[i];
            *count_p = count;
        }
    }
    return found;
}

static void fuse(const struct nn_fused *fused, struct nn_node *nodes, int count)
{
    struct nn_node *head = &nodes[0], *tail = &nodes[count - 1];

    head->layer = &fused->layer;
    head->out = tail->out;
    head->hidden = true;
    for (int i = 1; i < count; i++) {
        struct nn_node *node = &nodes[i];

        head->flops += node->flops;
        head->keep_fixed += node->keep_fixed;
        head->keep_bytes += node->keep_bytes;
        node->flops = 0;
        node->keep_fixed = node->keep_bytes = 0;
        node->in = node->out = head->out;
        node->identity = true;
        node->hidden = node != tail;
    }
}

struct nn_graph *nn_graph_fuse(const struct nn_graph *graph, int first, int last)
{
    struct nn_node *nodes;
    struct nn_graph *view = nn_graph_view(graph, &nodes);
    int count;

    for (int i = first; i<last; i += count> 0 ? count : 1) {
        const struct nn_fused *fused = longest(nodes + i, last - i, &count);

        if (fused != NULL)
            fuse(fused, nodes + i, count);
    }
    return view;
}
