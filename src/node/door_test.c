/* SPDX-License-Identifier: Apache-2.0 */
#include "node/door.h"

#include "base/test.h"

#include <unistd.h>

TEST(places_to_listen)
{
    static const struct {
        const char *text, *address;
        uint16_t port;
        bool is_v6, is_any;
    } good[] = {{"127.0.0.1:8443", "127.0.0.1", 8443, false, false},
                {"0.0.0.0:0", "0.0.0.0", 0, false, true},
                {"[::1]:65535", "::1", 65535, true, false},
                {"[::]:443", "::", 443, true, true},
                {"[fe80::1]:1", "fe80::1", 1, true, false}};
    struct bh_door_at at;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        CHECK_EQ(bh_door_parse(good[i].text, &at, NULL), BH_OK);
        CHECK_STR(at.address, good[i].address);
        CHECK_EQ(at.port, good[i].port);
        CHECK_EQ(at.is_v6, good[i].is_v6);
        CHECK_EQ(at.is_any, good[i].is_any);
    }
}

TEST(no_places)
{
    static const char *const bad[] = {"",          ":",          "8443",        ":8443",
                                      "127.0.0.1", "127.0.0.1:", "1.2.3.4:-1",  "1.2.3.4:65536",
                                      "::1:8443",  "[::1]",      "[::1]8443",   "[::1:8443",
                                      "host:8443", "[]:1",       "[1.2.3.4]:80"};
    struct bh_door_at at;
    struct bh_err err;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_EQ(bh_door_parse(bad[i], &at, &err), BH_USAGE);
}

TEST(a_port_is_found_and_had_once)
{
    struct bh_door_at at, again;
    struct bh_err err;
    int fd = -1, second = -1;
    CHECK_EQ(bh_door_parse("127.0.0.1:0", &at, &err), BH_OK);
    CHECK_EQ(bh_door_tcp(&at, &fd, &err), BH_OK);
    CHECK(at.port != 0);
    again = at;
    CHECK_EQ(bh_door_tcp(&again, &second, &err), BH_CONFLICT);
    CHECK(strstr(err.msg, "127.0.0.1"));
    (void)close(fd);
    CHECK_EQ(bh_door_tcp(&again, &second, &err), BH_OK);
    (void)close(second);
}

TEST_MAIN
