/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_check.c - the books' own audit: every invariant as a question whose answers are what breaks it.
 *
 * The questions use no view, trigger or generated column of the schema, so that a schema that let something through does
 * not also hide it. What core/lease knows about one lease is asked of core/lease, for every lease.
 */
#include "store/state_inside.h"
#include "store/state_lease.h"

#include <inttypes.h>

/* Each row: the words of one broken thing. */
static const char *const questions[] = {
    /* slices */
    "SELECT 'card ' || gpu || ' has ' || count(*) || ' whole slices' FROM slices WHERE kind = 'whole'"
    " GROUP BY gpu HAVING count(*) > 1",
    "SELECT 'two rows are slice ' || kind || ' ' || key || ' of ' || gpu FROM slices GROUP BY gpu, kind, key"
    " HAVING count(*) > 1",
    "SELECT 'slice ' || kind || ' ' || key || ' of ' || gpu || ' is ' || state || ' and names '"
    " || coalesce('lease L' || lease, 'nobody') FROM slices WHERE (state = 'owned' AND lease IS NULL)"
    " OR (state = 'free' AND (lease IS NOT NULL OR grant_id IS NOT NULL))",
    "SELECT 'leases L' || a.lease || ' and L' || b.lease || ' both have card ' || a.gpu || ', whole and '"
    " || b.kind || ' ' || b.key FROM slices a JOIN slices b ON b.gpu = a.gpu AND b.id <> a.id"
    " WHERE a.kind = 'whole' AND a.state = 'owned' AND b.state = 'owned'",
    "SELECT 'lease L' || a.lease || ' has instance ' || a.key || ' and lease L' || b.lease"
    " || ' a share beside it on ' || a.gpu FROM slices a JOIN slices b ON b.gpu = a.gpu"
    " WHERE a.kind = 'mig' AND b.kind = 'share' AND b.base IN ('', a.key) AND a.state = 'owned'"
    " AND b.state = 'owned'",
    "SELECT 'shares of ' || gpu || ' ' || base || ' come to ' || sum(milli) || ' thousandths and ' || sum(mib)"
    " || ' MiB' FROM slices s WHERE kind = 'share' AND state <> 'free' GROUP BY gpu, base"
    " HAVING sum(milli) > 1000 OR sum(mib) > coalesce(iif(base = '', (SELECT memory_mib FROM cards c"
    " WHERE c.uuid = s.gpu), (SELECT mib FROM slices m WHERE m.gpu = s.gpu AND m.kind = 'mig'"
    " AND m.key = s.base)), 0)",
    "SELECT 'slice ' || s.kind || ' ' || s.key || ' of ' || s.gpu || ' is not what lease L' || s.lease"
    " || ' was given' FROM slices s LEFT JOIN grants g ON g.id = s.grant_id WHERE s.lease IS NOT NULL"
    " AND (g.id IS NULL OR g.lease <> s.lease OR g.gpu <> s.gpu OR g.kind <> s.kind OR g.key <> s.key"
    " OR g.base <> s.base OR g.milli <> s.milli OR g.mib <> s.mib OR g.proved IS NOT NULL)",
    "SELECT 'slice ' || kind || ' ' || key || ' of ' || gpu || ' is quarantined without a reason' FROM slices"
    " WHERE state = 'quarantined' AND why = ''",
    "SELECT 'card ' || uuid || ' has no slice for all of it' FROM cards WHERE NOT EXISTS"
    " (SELECT 1 FROM slices s WHERE s.gpu = uuid AND s.kind = 'whole')",
    /* counts */
    "SELECT 'jobs of ' || tenant || ' that are ' || state || ': ' || sum(n) || ' too many are counted' FROM"
    " (SELECT tenant, state, n FROM job_counts UNION ALL SELECT tenant, state, -1 FROM jobs)"
    " GROUP BY tenant, state HAVING sum(n) <> 0",
    "SELECT 'leases of ' || tenant || ' that are ' || state || ': ' || sum(n) || ' too many are counted' FROM"
    " (SELECT tenant, state, n FROM lease_counts UNION ALL SELECT tenant, state, -1 FROM leases)"
    " GROUP BY tenant, state HAVING sum(n) <> 0",
    "SELECT 'the load of ' || user || ' of ' || tenant || ' is off by ' || sum(n) || ' jobs, ' || sum(b)"
    " || ' bytes' FROM (SELECT tenant, user, waiting AS n, bytes AS b FROM job_loads UNION ALL"
    " SELECT tenant, user, -(state = 'waiting'), -iif(state = 'ended', 0, length(argv) + length(env)) FROM jobs)"
    " GROUP BY tenant, user HAVING sum(n) <> 0 OR sum(b) <> 0",
    "SELECT 'job J' || j.id || ' has ended, and nobody knows what is left of it' FROM jobs j"
    " LEFT JOIN job_remains r ON r.job = j.id WHERE (j.state = 'ended') <> (r.job IS NOT NULL)",
    "SELECT 'what is left of the jobs of ' || tenant || ' is off by ' || sum(b) || ' bytes' FROM"
    " (SELECT tenant, bytes AS b FROM tenant_remains UNION ALL SELECT tenant, -bytes FROM job_remains"
    " WHERE pruned_ms = 0 AND bytes IS NOT NULL) GROUP BY tenant HAVING sum(b) <> 0",
    "SELECT 'what ' || tenant || ' has is off by ' || sum(n) || ' thousandths, ' || sum(b) || ' MiB' FROM"
    " (SELECT tenant, milli AS n, mib AS b FROM tenant_held UNION ALL SELECT l.tenant, -s.milli, -s.mib"
    " FROM slices s JOIN leases l ON l.id = s.lease) GROUP BY tenant HAVING sum(n) <> 0 OR sum(b) <> 0",
    /* proofs */
    "SELECT 'lease L' || g.lease || ' handed on ' || g.kind || ' ' || g.key || ' of ' || g.gpu"
    " || ' by a verdict that is ' || coalesce(v.verdict, 'not there') FROM grants g"
    " LEFT JOIN scrubs v ON v.id = g.proved WHERE g.proved IS NOT NULL AND (v.verdict IS NOT 'clean'"
    " OR v.lease IS NOT g.lease OR v.gpu <> g.gpu OR v.kind <> g.kind OR v.key <> g.key)",
    "SELECT 'one verdict frees ' || count(*) || ' slices of lease L' || min(lease) FROM grants"
    " WHERE proved IS NOT NULL GROUP BY proved HAVING count(*) > 1",
    "SELECT 'what lease L' || g.lease || ' was given (' || g.kind || ' ' || g.key || ' of ' || g.gpu"
    " || ') names it no more and was never proved clean' FROM grants g WHERE g.proved IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM slices s WHERE s.grant_id = g.id)",
    /* usage */
    "SELECT 'usage ' || u.id || ' of lease L' || u.lease || ' ends before it begins' FROM usage u"
    " WHERE to_ms < from_ms",
    "SELECT 'two open intervals for one slice of lease L' || lease FROM usage WHERE to_ms IS NULL"
    " GROUP BY grant_id HAVING count(*) > 1",
    "SELECT 'intervals ' || a.id || ' and ' || b.id || ' of lease L' || a.lease || ' overlap' FROM usage a"
    " JOIN usage b ON b.lease = a.lease AND b.grant_id = a.grant_id AND b.id > a.id"
    " WHERE a.to_ms IS NULL OR b.from_ms < a.to_ms",
    "SELECT 'lease L' || l.id || ' is ' || l.state || ' and nobody pays for ' || s.kind || ' ' || s.key"
    " || ' of ' || s.gpu FROM leases l JOIN slices s ON s.lease = l.id WHERE l.state = 'active'"
    " AND NOT EXISTS (SELECT 1 FROM usage u WHERE u.grant_id = s.grant_id AND u.to_ms IS NULL)",
    "SELECT 'usage ' || u.id || ' is not what lease L' || u.lease || ' was given' FROM usage u"
    " JOIN leases l ON l.id = u.lease JOIN grants g ON g.id = u.grant_id"
    " WHERE g.lease <> u.lease OR u.tenant <> l.tenant OR u.mechanism <> l.mechanism OR g.gpu <> u.gpu"
    " OR g.kind <> u.kind OR g.key <> u.key OR (u.to_ms IS NULL AND (u.mib <> g.mib"
    " OR u.milli <> iif(g.base = '', g.milli, g.milli * (SELECT b.milli FROM slices b"
    " WHERE b.gpu = g.gpu AND b.kind = 'mig' AND b.key = g.base) / 1000)))",
    /* leases and jobs */
    "SELECT 'job J' || job || ' has ' || count(*) || ' leases at once' FROM leases"
    " WHERE state NOT IN ('refused', 'scrubbing', 'released', 'quarantined') GROUP BY job HAVING count(*) > 1",
    "SELECT 'lease L' || l.id || ' of ' || l.tenant || ' is for job J' || l.job || ' of '"
    " || coalesce(j.tenant, 'nobody') FROM leases l LEFT JOIN jobs j ON j.id = l.job"
    " WHERE j.tenant IS NOT l.tenant",
    "SELECT 'lease L' || l.id || ' is ' || l.state || ', its history ends with ' || coalesce(h.new, 'nothing')"
    " FROM leases l LEFT JOIN lease_history h ON h.id = (SELECT max(id) FROM lease_history WHERE lease = l.id)"
    " WHERE l.state <> coalesce(h.new, 'requested')",
    "SELECT 'the history of lease L' || h.lease || ' jumps from ' || p.new || ' to ' || h.old"
    " FROM lease_history h JOIN lease_history p ON p.id = (SELECT max(id) FROM lease_history"
    " WHERE lease = h.lease AND id < h.id) WHERE p.new <> h.old",
    /* policy */
    "SELECT count(*) || ' policies are in force' FROM policies WHERE active HAVING count(*) > 1",
};

static int ask(struct bh_store *s, const char *question, struct bh_buf *words, uint32_t *broken,
               struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_sql q;
    int rc = bh_sql_get(s, question, &q, err);
    if (rc < 0)
        return rc;
    while ((rc = bh_sql_step(&q, err)) > 0) {
        bh_buf_printf(words, "%s\n", bh_text_or_none(bh_sql_col_text(&q, 0, &arena)));
        ++*broken;
    }
    bh_arena_fini(&arena);
    return rc;
}

/* What core/lease says of each; the keeper is not the store's to know. */
#define FACTS                                                                                          \
    "SELECT l.id, l.state, coalesce(g.n, 0), coalesce(s.owned, 0), coalesce(s.dirty, 0),"              \
    " coalesce(s.quarantined, 0), coalesce(g.proved, 0), coalesce(u.n, 0) FROM leases l"               \
    " LEFT JOIN (SELECT lease, count(*) AS n, count(proved) AS proved FROM grants GROUP BY lease) g"   \
    " ON g.lease = l.id"                                                                               \
    " LEFT JOIN (SELECT lease, sum(state = 'owned') AS owned, sum(state = 'dirty') AS dirty,"          \
    " sum(state = 'quarantined') AS quarantined FROM slices WHERE lease IS NOT NULL GROUP BY lease) s" \
    " ON s.lease = l.id"                                                                               \
    " LEFT JOIN (SELECT lease, count(*) AS n FROM usage WHERE to_ms IS NULL GROUP BY lease) u"         \
    " ON u.lease = l.id"

static int ask_core(struct bh_store *s, struct bh_buf *words, uint32_t *broken, struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, FACTS, &q, err);
    if (rc < 0)
        return rc;
    while ((rc = bh_sql_step(&q, err)) > 0) {
        struct bh_arena arena = {0};
        struct bh_err said = {0};
        const uint64_t id = bh_sql_col_uint(&q, 0);
        const int state = bh_lease_state_find(bh_sql_col_text(&q, 1, &arena));
        const struct bh_lease_facts f = {.state = (enum bh_lease_state)state,
                                         .granted = (uint32_t)bh_sql_col_uint(&q, 2),
                                         .owned = (uint32_t)bh_sql_col_uint(&q, 3),
                                         .dirty = (uint32_t)bh_sql_col_uint(&q, 4),
                                         .quarantined = (uint32_t)bh_sql_col_uint(&q, 5),
                                         .proved = (uint32_t)bh_sql_col_uint(&q, 6),
                                         .usage_open = (uint32_t)bh_sql_col_uint(&q, 7)};
        if (state < 0)
            (void)bh_fail(&said, BH_CONFLICT, "it is in no state that there is");
        if (state < 0 || bh_lease_invariant(&f, &said) < 0) {
            bh_buf_printf(words, "lease L%" PRIu64 ": %s\n", id, said.msg);
            ++*broken;
        }
        bh_arena_fini(&arena);
    }
    return rc;
}

int bh_store_check(struct bh_store *s, struct bh_buf *words, uint32_t *ret_broken, struct bh_err *err)
{
    uint32_t broken = 0;
    int rc = 0;
    for (size_t i = 0; i < BH_COUNT_OF(questions) && rc == 0; i++)
        rc = ask(s, questions[i], words, &broken, err);
    if (rc == 0)
        rc = ask_core(s, words, &broken, err);
    if (rc == 0)
        *ret_broken = broken;
    return rc;
}
