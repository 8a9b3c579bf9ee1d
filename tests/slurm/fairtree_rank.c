/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fairtree_rank.c - the ranks of a tree that is read, for comparison with a real Slurm.
 *
 * Usage: fairtree_rank documented|slurm < TREE. Each line of the tree is a node: `account|user PARENT SHARES
 * USAGE`, where PARENT is the number of an earlier line, 0 for the root, and SHARES may be `parent`. For each
 * line the rank is written, 0 for an account.
 */
#include "base/units.h"
#include "core/sched/fairtree.h"

#include <stdio.h>
#include <string.h>

static int read_node(struct bh_fairtree *t, char *line, struct bh_err *err)
{
    char *word[4] = {line}, *next = line;
    uint64_t parent, shares = BH_FAIRTREE_PARENT, usage;
    uint32_t node;
    for (int i = 1; i < 4; i++) {
        next = strchr(next, ' ');
        if (!next)
            return bh_fail(err, BH_INVALID, "four words are needed");
        *next++ = '\0';
        word[i] = next;
    }
    int rc = bh_uint_parse(word[1], UINT32_MAX, &parent, err);
    if (!rc && strcmp(word[2], "parent") != 0)
        rc = bh_uint_parse(word[2], UINT32_MAX - 1, &shares, err);
    if (!rc)
        rc = bh_uint_parse(word[3], UINT64_MAX, &usage, err);
    if (!rc)
        rc = bh_fairtree_add(t, (uint32_t)parent, strcmp(word[0], "user") == 0, (uint32_t)shares, usage,
                             &node, err);
    return rc;
}

int main(int argc, char **argv)
{
    struct bh_fairtree t BH_AUTO(bh_fairtree_fini);
    struct bh_err err;
    char line[256];
    bh_fairtree_init(&t);
    if (argc != 2 || (strcmp(argv[1], "documented") != 0 && strcmp(argv[1], "slurm") != 0)) {
        fputs("usage: fairtree_rank documented|slurm < TREE\n", stderr);
        return 2;
    }
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (read_node(&t, line, &err)) {
            fprintf(stderr, "line %zu: %s\n", t.nodes.n, err.msg);
            return 2;
        }
    }
    bh_fairtree_rank(&t, strcmp(argv[1], "slurm") == 0 ? BH_FAIRTREE_SLURM : BH_FAIRTREE_DOCUMENTED);
    for (size_t i = 1; i < t.nodes.n; i++)
        printf("%u\n", t.nodes.at[i].rank);
    return 0;
}
