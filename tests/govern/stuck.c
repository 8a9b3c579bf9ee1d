/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stuck.c - sends to $BULKHEAD_PROBE from a page that never comes, and never gets any further.
 *
 *     stuck fault          the page is one of userfaultfd's
 *     stuck file FOLDER    it is one of a file system of its own, mounted there
 *
 * Prints its process id right before, or `cannot` and why.
 */
#include "warden/served_page_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int main(int argc, char **argv)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *at = getenv("BULKHEAD_PROBE");
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (argc < 2 || !at || snprintf(to.sun_path, sizeof(to.sun_path), "%s", at) >= (int)sizeof(to.sun_path))
        return 2;
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0) {
        perror("stuck: connect");
        return 1;
    }
    const void *page = argc == 3 ? served_by_file(argv[2], false) : served_by_fault(true, -1);
    if (!page) {
        printf("cannot %s\n", strerror(errno));
        return 0;
    }
    printf("%ld\n", (long)getpid());
    (void)fflush(stdout);
    const ssize_t n = send(fd, page, 8, 0);
    printf("sent %zd\n", n);
    return 1;
}
