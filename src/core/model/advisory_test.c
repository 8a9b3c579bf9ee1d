/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/advisory.h"

#include "base/choice.h"
#include "base/str.h"
#include "base/test.h"
#include "base/units.h"

static int32_t day(const char *date)
{
    int32_t d = 0;

    return bh_date_parse(date, &d, NULL) == 0 ? d : INT32_MIN;
}

/* n_open, or -1 when the version cannot be read. */
static int open_on(const char *component, const char *version, const char *date, struct bh_exposure *ret)
{
    return bh_advisory_check(component, version, day(date), ret, NULL) == 0 ? (int)ret->n_open : -1;
}

static int compare(const char *a, const char *b)
{
    struct bh_version va, vb;

    if (bh_version_parse(a, &va, NULL) != 0 || bh_version_parse(b, &vb, NULL) != 0)
        return -99;
    return bh_version_compare(&va, &vb);
}

TEST(versions_are_read_field_by_field)
{
    struct bh_version v;

    CHECK_EQ(bh_version_parse("580.159.03", &v, NULL), 0);
    CHECK_EQ(v.n, 3);
    CHECK_EQ(v.field[0], 580);
    CHECK_EQ(v.field[1], 159);
    CHECK_EQ(v.field[2], 3);
    CHECK(!v.prerelease);
    CHECK_EQ(bh_version_parse("v25.3.2-rc.12", &v, NULL), 0);
    CHECK(v.prerelease);
    CHECK_EQ(v.pre_number, 12);
    CHECK_EQ(bh_version_parse("4294967295", &v, NULL), 0);
    CHECK_EQ(v.field[0], UINT32_MAX);
}

TEST(versions_compare_as_numbers)
{
    CHECK_EQ(compare("1.17.8", "1.17.7"), 1);
    CHECK_EQ(compare("1.9", "1.10"), -1);
    CHECK_EQ(compare("v1.17.8", "1.17.8"), 0);
    CHECK_EQ(compare("1.17", "1.17.0"), 0);
    CHECK_EQ(compare("580.95.05", "580.95.5"), 0);
    CHECK_EQ(compare("580", "580.0.0.0.0.1"), -1);
}

TEST(a_pre_release_sorts_before_its_release)
{
    CHECK_EQ(compare("25.3.2-rc.1", "25.3.2"), -1);
    CHECK_EQ(compare("25.3.2-rc.1", "25.3.1"), 1);
    CHECK_EQ(compare("1.4.0-rc.3", "1.4.0-rc.12"), -1);
    CHECK_EQ(compare("1.17.0~rc.2-1", "1.17.0~rc.3-1"), -1);
    CHECK_EQ(compare("1.17.0~rc.2-1", "1.17.0-rc.2"), 0);
    CHECK_EQ(compare("1.17.0-rc", "1.17.0-rc.1"), -1);
}

TEST(a_package_of_a_release_is_the_release)
{
    CHECK_EQ(compare("1.17.8-1", "1.17.8"), 0);
    CHECK_EQ(compare("580.159.03-0ubuntu1", "580.159.03"), 0);
    CHECK_EQ(compare("1.2.3+k8s.20260101000000000000", "1.2.3"), 0);
}

TEST(what_is_no_version_is_refused_and_named)
{
    static const char *const bad[] = {"",
                                      "v",
                                      "latest",
                                      ".1",
                                      "1.",
                                      "1..2",
                                      "580.x",
                                      " 580",
                                      "580 ",
                                      "-1",
                                      "1-",
                                      "1~",
                                      "1+",
                                      "1_2",
                                      "1.2/3",
                                      "1-rc\n",
                                      "\xff\xfe",
                                      "4294967296",
                                      "1.2.3.4.5.6.7",
                                      "1-rc.4294967296",
                                      "99999999999999999999999"};
    char longest[80];
    struct bh_version v = {.n = 77};
    struct bh_err err;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (bh_version_parse(bad[i], &v, &err) != BH_INVALID)
            printf("# accepted: '%s'\n", bad[i]);
        CHECK_EQ(bh_version_parse(bad[i], &v, &err), BH_INVALID);
        CHECK_EQ(v.n, 77);
    }
    CHECK_EQ(bh_version_parse("580.x", &v, &err), BH_INVALID);
    CHECK_STR(err.msg, "'580.x' is not a version: need dotted numbers such as 580.159.03");
    memset(longest, '1', sizeof(longest));
    longest[1] = '-';
    longest[64] = '\0';
    CHECK_EQ(bh_version_parse(longest, &v, NULL), 0);
    longest[64] = '1';
    longest[65] = '\0';
    CHECK_EQ(bh_version_parse(longest, &v, NULL), BH_INVALID);
}

TEST(a_branch_accepts_its_versions)
{
    CHECK(bh_version_accepts("580", "580.159.03"));
    CHECK(bh_version_accepts("580", "580"));
    CHECK(bh_version_accepts("v580", "580.1-rc.1"));
    CHECK(!bh_version_accepts("580", "58.0"));
    CHECK(!bh_version_accepts("580", "5800.1"));
    CHECK(bh_version_accepts("580.159", "580.159.03"));
    CHECK(!bh_version_accepts("580.159", "580.126.09"));
    CHECK(bh_version_accepts("580.159.03", "580.159.3"));
    CHECK(!bh_version_accepts("580.159.03", "580.159.04"));
    CHECK(!bh_version_accepts("580.159.03", "580.159.03.1"));
    CHECK(!bh_version_accepts("580.159.03", "580"));
    CHECK(!bh_version_accepts("580-rc.1", "580.1"));
    CHECK(!bh_version_accepts("any", "580.1"));
    CHECK(!bh_version_accepts("580", ""));
}

/* Text made of what versions are made of, so that most of it parses. */
static void draw_version(struct bh_choice *c, char *ret)
{
    static const char *const pieces[] = {"0", "1",    "9", "10", "580", ".",  ".",
                                         ".", "-rc.", "-", "~",  "v",   "+b", "03"};
    size_t n = 0;

    for (uint32_t k = 1 + bh_choose(c, 8); k; k--) {
        const char *p = pieces[bh_choose(c, sizeof(pieces) / sizeof(pieces[0]))];

        memcpy(ret + n, p, strlen(p) + 1);
        n += strlen(p);
    }
}

TEST(comparison_is_an_order)
{
    unsigned parsed = 0;

    for (uint64_t seed = 1; seed <= 20000; seed++) {
        uint8_t bytes[64];
        struct bh_choice c = {bytes, sizeof(bytes)};
        char s[3][64];
        struct bh_version v[3];
        int ab, bc, ac;

        bh_choice_fill(bytes, sizeof(bytes), seed);
        for (int i = 0; i < 3; i++)
            draw_version(&c, s[i]);
        if (bh_version_parse(s[0], &v[0], NULL) || bh_version_parse(s[1], &v[1], NULL) ||
            bh_version_parse(s[2], &v[2], NULL))
            continue;
        parsed++;
        ab = bh_version_compare(&v[0], &v[1]);
        bc = bh_version_compare(&v[1], &v[2]);
        ac = bh_version_compare(&v[0], &v[2]);
        if (ab != -bh_version_compare(&v[1], &v[0]) || (ab <= 0 && bc <= 0 && ac > 0) ||
            (ab == 0 && ac != bc))
            printf("# seed %" PRIu64 ": %s %s %s\n", seed, s[0], s[1], s[2]);
        CHECK_EQ(ab, -bh_version_compare(&v[1], &v[0]));
        CHECK(!(ab <= 0 && bc <= 0 && ac > 0));
        CHECK(ab != 0 || ac == bc);
    }
    CHECK(parsed > 200);
}

TEST(toolkit_before_the_hook_escape_fix)
{
    struct bh_exposure e;

    CHECK_EQ(open_on("nvidia-container-toolkit", "1.17.7", "2025-07-20", &e), 1);
    CHECK_STR(e.worst->worst_cve, "CVE-2025-23266");
    CHECK(strstr(e.worst->cves, "CVE-2025-23267"));
    CHECK_EQ(e.worst->cvss_tenths, 90);
    CHECK_EQ(e.worst->bulletin, 5659);
    CHECK_STR(e.fix_version, "1.17.8");
    CHECK(!e.unpatched_branch);
    CHECK_EQ(open_on("nvidia-container-toolkit", "v1.17.8-rc.1", "2025-07-20", &e), 1);
    CHECK_EQ(open_on("nvidia-container-toolkit", "1.17.8", "2025-07-20", &e), 0);
    CHECK(!e.worst && !e.oldest);
    CHECK_EQ(open_on("nvidia-container-toolkit", "1.17.8-1", "2025-07-20", &e), 0);
}

TEST(later_bulletins_count_from_their_day)
{
    struct bh_exposure e;

    CHECK_EQ(open_on("nvidia-container-toolkit", "1.17.7", "2025-07-14", &e), 0);
    CHECK_EQ(open_on("nvidia-container-toolkit", "1.17.7", "2025-07-15", &e), 1);
    CHECK_EQ(open_on("nvidia-container-toolkit", "1.17.8", "2026-06-29", &e), 0);
    CHECK_EQ(open_on("nvidia-container-toolkit", "1.17.8", "2026-06-30", &e), 1);
    CHECK_STR(e.worst->worst_cve, "CVE-2026-24260");
    CHECK_STR(e.fix_version, "1.19.1");
    CHECK_EQ(open_on("nvidia-container-toolkit", "1.17.7", "2026-11-01", &e), 2);
    CHECK_STR(e.worst->worst_cve, "CVE-2025-23266");
    CHECK_EQ(e.oldest->published_day, day("2025-07-15"));
    CHECK_EQ(open_on("nvidia-container-toolkit", "1.19.1", "2026-11-01", &e), 0);
    CHECK_EQ(open_on("nvidia-driver", "580.1", "2020-01-01", &e), 0);
    CHECK(!e.unpatched_branch && !e.fix_version);
}

TEST(of_equal_scores_the_newest_is_named)
{
    struct bh_exposure e;

    CHECK_EQ(open_on("nvidia-container-toolkit", "1.16.1", "2025-12-01", &e), 5);
    CHECK_EQ(e.worst->bulletin, 5659);
    CHECK_EQ(e.oldest->bulletin, 5582);
}

TEST(operator_is_fixed_at_25_3_2)
{
    struct bh_exposure e;

    CHECK_EQ(open_on("gpu-operator", "25.3.1", "2025-12-01", &e), 1);
    CHECK_STR(e.worst->worst_cve, "CVE-2025-23266");
    CHECK_EQ(open_on("gpu-operator", "v25.3.2", "2025-12-01", &e), 0);
}

TEST(driver_is_judged_on_its_own_branch)
{
    struct bh_exposure e;

    CHECK_EQ(open_on("nvidia-driver", "580.159.03", "2026-11-01", &e), 0);
    CHECK(!e.unpatched_branch);
    CHECK_EQ(open_on("nvidia-driver", "580.126.09", "2026-11-01", &e), 1);
    CHECK_EQ(e.worst->bulletin, 5821);
    CHECK_STR(e.worst->worst_cve, "CVE-2026-24187");
    CHECK_STR(e.worst->branch, "580");
    CHECK_STR(e.fix_version, "580.159.03");
    CHECK(!e.unpatched_branch);
    CHECK_EQ(open_on("nvidia-driver", "535.309.01", "2026-11-01", &e), 0);
    CHECK(!e.unpatched_branch);
    CHECK_EQ(open_on("vgpu-manager-kvm", "580.159.01", "2026-11-01", &e), 0);
    CHECK_EQ(open_on("nvidia-driver", "580.159.01", "2026-11-01", &e), 1);
}

TEST(a_branch_the_newest_bulletin_leaves_out_is_unpatched)
{
    struct bh_exposure e;

    CHECK_EQ(open_on("nvidia-driver", "570.211.01", "2026-11-01", &e), 0);
    CHECK(e.unpatched_branch);
    CHECK_STR(e.fix_version, "580.159.03");
    CHECK_EQ(open_on("nvidia-driver", "570.211.01", "2026-05-18", &e), 0);
    CHECK(!e.unpatched_branch);
    CHECK_EQ(open_on("nvidia-driver", "590.48.01", "2026-11-01", &e), 0);
    CHECK(e.unpatched_branch);
    CHECK_STR(e.fix_version, "595.71.05");
    CHECK_EQ(open_on("vgpu-manager-kvm", "570.211.01", "2026-11-01", &e), 0);
    CHECK(e.unpatched_branch);
    /* Listed once, left out since, and above all that the newest bulletin lists. */
    CHECK_EQ(open_on("nvidia-driver", "575.51.02", "2025-08-01", &e), 0);
    CHECK(e.unpatched_branch && !e.fix_version);
    /* Never listed, but older than what is. */
    CHECK_EQ(open_on("nvidia-driver", "560.35.03", "2026-11-01", &e), 0);
    CHECK(e.unpatched_branch);
    CHECK_EQ(open_on("nvidia-driver", "0.1", "2026-11-01", &e), 0);
    CHECK(e.unpatched_branch);
}

TEST(nobody_is_sent_to_a_branch_that_has_ended)
{
    struct bh_exposure e;

    CHECK_EQ(open_on("nvidia-driver", "470.256.02", "2026-06-30", &e), 0);
    CHECK_STR(e.fix_version, "535.309.01");
    CHECK_EQ(open_on("nvidia-driver", "470.256.02", "2026-07-01", &e), 0);
    CHECK_STR(e.fix_version, "580.159.03");
    CHECK_EQ(open_on("nvidia-driver", "470.256.02", "2099-01-01", &e), 0);
    CHECK_STR(e.fix_version, "595.71.05");
}

TEST(a_branch_newer_than_the_bulletins_is_not_judged)
{
    struct bh_exposure e;

    CHECK_EQ(open_on("nvidia-driver", "640.10", "2026-11-01", &e), 0);
    CHECK(!e.unpatched_branch && !e.worst && !e.oldest && !e.fix_version);
    CHECK_EQ(open_on("nvidia-driver", "595.71.05", "2026-05-01", &e), 0);
    CHECK(!e.unpatched_branch);
}

TEST(what_no_bulletin_can_judge_has_nothing_open)
{
    struct bh_exposure e;
    struct bh_err err;

    CHECK_EQ(open_on("kubelet", "1.0", "2026-11-01", &e), 0);
    CHECK(!e.fix_version);
    CHECK_EQ(open_on("hgx-firmware", "1.2.1", "2026-11-01", &e), 0);
    CHECK(!e.fix_version);
    CHECK_EQ(bh_advisory_check("nvidia-driver", "newest", 0, &e, &err), BH_INVALID);
    CHECK(bh_str_starts(err.msg, "nvidia-driver: 'newest' is not a version"));
    CHECK_EQ(bh_advisory_check("kubelet", "newest", 0, &e, NULL), BH_INVALID);
}

TEST(every_fix_closes_its_own_advisory)
{
    CHECK_EQ(bh_advisory_count(), 172);
    for (size_t i = 0; i < bh_advisory_count(); i++) {
        const struct bh_advisory *a = bh_advisory_at(i);
        struct bh_exposure before, at;
        char candidate[80];

        CHECK(a->cvss_tenths > 0 && a->cvss_tenths <= 100 && a->published_day > day("2023-01-01"));
        CHECK(strstr(a->cves, a->worst_cve));
        if (strcmp(a->component, "hgx-firmware") == 0 || strcmp(a->component, "nvos") == 0)
            continue;
        (void)snprintf(candidate, sizeof(candidate), "%s-rc.1", a->fixed);
        CHECK_EQ(bh_advisory_check(a->component, candidate, a->published_day, &before, NULL), 0);
        CHECK_EQ(bh_advisory_check(a->component, a->fixed, a->published_day, &at, NULL), 0);
        CHECK(before.n_open > at.n_open);
        CHECK(!at.unpatched_branch && before.worst->cvss_tenths >= a->cvss_tenths);
    }
}

TEST_MAIN
