/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every class, command and number that a real driver was seen to answer has a row here that answers the same: the
 * recordings of data/recordings, line by line.
 */
#include "base/str.h"
#include "base/sysfile.h"
#include "base/test.h"
#include "simgpu/rm/rm_fixture.h"
#include "simgpu/rm/state.h"

#include <dirent.h>
#include <errno.h>

static uint32_t n_bad, n_seen;

static void complain(const struct bh_call *c, const char *why)
{
    struct bh_buf line;
    bh_buf_init(&line, 1024);
    bh_call_write(&line, c);
    printf("# %s: %s\n", bh_buf_text(&line), why);
    bh_buf_fini(&line);
    n_bad++;
}

static void check_alloc(const struct bh_sim_rm *rm, const struct bh_call *c)
{
    const struct sim_class *class = bh_simrm_class(rm, c->what);
    if (!class)
        complain(c, "the class has no row");
    else if ((class->kind == SIM_ABSENT) != (c->status == RM_NOT_SUPPORTED))
        complain(c, "the row answers otherwise");
    else if (c->params && class->params >= 0 && (uint32_t)class->params != c->params)
        complain(c, "the row has another size");
}

static void check_control(const struct bh_sim_rm *rm, const struct bh_call *c)
{
    const struct sim_command *row = bh_simrm_command(rm, c->what);
    /* these two were seen to answer in two ways */
    bool varies = c->what == 0x20800146 || c->what == 0x2080014b;
    if (!row)
        complain(c, "the command has no row");
    else if (row->params >= 0 && (uint32_t)row->params != c->params)
        complain(c, "the row has another size");
    else if (!row->handle && row->status != c->status && !varies)
        complain(c, "the row answers otherwise");
}

/* Known means: refused for what is in it, not for what it is. */
static void check_number(struct bh_sim_rm *rm, uint32_t ctl, uint32_t uvm, const struct bh_call *c)
{
    static uint8_t arg[BH_IOCTL_BYTES_MAX];
    bool of_uvm = c->kind == BH_CALL_UVM;
    memset(arg, 0, sizeof(arg));
    arg[0] = 2; /* only asks for the version, where that is it */
    int rc =
        bh_sim_rm_ioctl(rm, of_uvm ? uvm : ctl, &fx_user, of_uvm ? c->number : RM_IOC(c->number, c->bytes),
                        arg, of_uvm ? sizeof(arg) : c->bytes, NULL, 0);
    if (rc != -c->error)
        complain(c, rc == -EINVAL ? "the number has no row" : "the row answers otherwise");
}

static void check_recording(const char *path)
{
    char *text = NULL;
    size_t n = 0;
    struct bh_recording r = {0};
    struct bh_err err = {0};
    if (bh_sysfile_read(path, 16 << 20, &text, &n, &err) < 0 ||
        bh_recording_parse(path, text, n, &r, &err) < 0) {
        printf("# %s\n", err.msg);
        n_bad++;
        free(text);
        return;
    }
    struct bh_sim_rm *rm = fx_new("H200-141GB", 1);
    uint32_t ctl = fx_open(rm, &fx_user), uvm = (uint32_t)bh_sim_rm_open(rm, BH_FILE_UVM, 0, &fx_user);
    for (size_t i = 0; i < r.calls.n; i++, n_seen++) {
        const struct bh_call *c = &r.calls.at[i];
        if (c->kind == BH_CALL_ALLOC)
            check_alloc(rm, c);
        else if (c->kind == BH_CALL_CONTROL)
            check_control(rm, c);
        else if (c->kind == BH_CALL_ESCAPE || (c->kind == BH_CALL_UVM && c->file == BH_FILE_UVM))
            check_number(rm, ctl, uvm, c);
    }
    bh_sim_rm_free(rm);
    bh_recording_fini(&r);
    free(text);
}

TEST(what_was_recorded_is_answered)
{
    DIR *folder = opendir(BH_RECORDINGS);
    CHECK(folder != NULL);
    for (struct dirent *e; (e = readdir(folder));) {
        char path[4096];
        int n = snprintf(path, sizeof(path), "%s/%s", BH_RECORDINGS, e->d_name);
        if (bh_str_ends(e->d_name, ".rec") && n > 0 && (size_t)n < sizeof(path))
            check_recording(path);
    }
    closedir(folder);
    CHECK(n_seen > 1000);
    CHECK_EQ(n_bad, 0);
}

TEST_MAIN
