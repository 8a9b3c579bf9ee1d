/* SPDX-License-Identifier: Apache-2.0 */
#include "host/parse.h"

#include "base/mem.h"
#include "base/test.h"

static const char *text_of(struct bh_span s)
{
    static char text[256];
    (void)snprintf(text, sizeof(text), "%.*s", (int)s.n, s.at);
    return text;
}

TEST(driver_parameters)
{
    static const char text[] =
        "RmProfilingAdminOnly: 1\n\nno colon here\n : empty key\nRegistryDwords: \"A=1;B=2\"\n"
        "  DeviceFileMode :  438 \nRmMsg: \"\"\nLast:";
    static const char *const want[][2] = {{"RmProfilingAdminOnly", "1"},
                                          {"RegistryDwords", "A=1;B=2"},
                                          {"DeviceFileMode", "438"},
                                          {"RmMsg", ""},
                                          {"Last", ""}};
    struct bh_span key, value;
    size_t pos = 0;
    for (size_t i = 0; i < BH_COUNT_OF(want); i++) {
        CHECK(bh_params_next(text, &pos, &key, &value));
        CHECK_STR(text_of(key), want[i][0]);
        CHECK_STR(text_of(value), want[i][1]);
    }
    CHECK(!bh_params_next(text, &pos, &key, &value));
}

TEST(lockdown)
{
    CHECK_STR(text_of(bh_lockdown_word("none [integrity] confidentiality\n")), "integrity");
    CHECK_STR(text_of(bh_lockdown_word("[none] integrity")), "none");
    CHECK_EQ(bh_lockdown_word("none integrity]").n, 0);
    CHECK_EQ(bh_lockdown_word("none [").n, 0);
}

TEST(secure_boot)
{
    CHECK_EQ(bh_secure_boot((const uint8_t *)"\6\0\0\0\1", 5), BH_KNOWN_YES);
    CHECK_EQ(bh_secure_boot((const uint8_t *)"\6\0\0\0\0", 5), BH_KNOWN_NO);
    CHECK_EQ(bh_secure_boot((const uint8_t *)"\6\0\0\0\2", 5), BH_KNOWN_NOT);
    CHECK_EQ(bh_secure_boot((const uint8_t *)"\6\0\0\0", 4), BH_KNOWN_NOT);
}

TEST(package_versions)
{
    static const char text[] =
        "Package: nvidia-container-toolkit-base\nStatus: install ok installed\nVersion: 9.9-1\n\n"
        "Package: nvidia-container-toolkit\nVersion: 1:1.17.8~rc.1-1\nStatus: install ok installed\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nVersion: 3\n";
    CHECK_STR(text_of(bh_dpkg_version(text, "nvidia-container-toolkit")), "1.17.8~rc.1");
    CHECK_STR(text_of(bh_dpkg_version(text, "nvidia-container-toolkit-base")), "9.9");
    CHECK_EQ(bh_dpkg_version(text, "gone").n, 0);
    CHECK_EQ(bh_dpkg_version(text, "container").n, 0);
    CHECK_EQ(bh_dpkg_version("", "x").n, 0);
}

TEST(driver_version)
{
    CHECK_STR(
        text_of(bh_driver_version(
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build  (x@y)\nGCC 12.2")),
        "580.159.03");
    CHECK_STR(text_of(bh_driver_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54")), "535.54");
    CHECK_EQ(bh_driver_version("no version here ... 12\n1.2").n, 0);
}

static void put(uint8_t *c, size_t at, unsigned v)
{
    c[at] = (uint8_t)v;
    c[at + 1] = (uint8_t)(v >> 8);
}

/* A port of the given type whose ACS control word is `control`; next: where the second capability is. */
static uint8_t *port(unsigned type, unsigned next, unsigned control)
{
    static uint8_t c[4096];
    memset(c, 0, sizeof(c));
    c[6] = 0x10;
    c[0x34] = 0x40;
    c[0x40] = 0x10;
    c[0x42] = (uint8_t)(type << 4 | 2);
    put(c, 0x100, 1);
    put(c, 0x102, next << 4 | 1);
    put(c, 0x148, 0x0d);
    put(c, 0x14e, control);
    return c;
}

TEST(access_control_of_ports)
{
    bool is_port;
    CHECK_EQ(bh_acs_redirects(port(4, 0x148, 0x1d), 4096, &is_port), BH_KNOWN_YES);
    CHECK(is_port);
    CHECK_EQ(bh_acs_redirects(port(6, 0x148, 0x11), 4096, &is_port), BH_KNOWN_NO);
    CHECK(is_port);
    CHECK_EQ(bh_acs_redirects(port(6, 0, 0), 4096, &is_port),
             BH_KNOWN_NO); /* it has no access control at all */
    (void)bh_acs_redirects(port(5, 0x148, 0), 4096, &is_port);
    CHECK(!is_port); /* a switch's upstream port has none to set */
    CHECK_EQ(bh_acs_redirects(port(4, 0x148, 0x1d), 64, &is_port), BH_KNOWN_NOT);
    CHECK_EQ(bh_acs_redirects(port(4, 0x148, 0x1d), 3, &is_port), BH_KNOWN_NOT);
    CHECK_EQ(bh_acs_redirects(port(4, 0x100, 0), 4096, &is_port),
             BH_KNOWN_NO); /* a list that is a loop ends */
}

TEST_MAIN
