/* SPDX-License-Identifier: Apache-2.0 */
#include "record/decode.h"

#include "base/test.h"
#include "gpu/abi/rm.h"

static struct rm_memory_params params;
static unsigned reads;

static bool read_params(void *ctx, uint64_t address, void *to, size_t n)
{
    (void)ctx;
    reads++;
    if (address != 0x1000 || n != sizeof(params))
        return false;
    memcpy(to, &params, n);
    return true;
}

/* The line that a structure becomes. */
static const char *line(struct bh_objects *o, uint32_t number, const void *bytes, size_t n, int error)
{
    static struct bh_buf b;
    struct bh_call call;
    struct bh_ioctl in = {
        .file = BH_FILE_CTL,
        .cmd = RM_IOC(number, n),
        .bytes = bytes,
        .n = n,
        .error = error,
        .read = read_params,
    };
    bh_ioctl_decode(o, &in, &call);
    bh_buf_fini(&b);
    bh_buf_init(&b, 4096);
    bh_call_write(&b, &call);
    return bh_buf_text(&b);
}
#define LINE(number, s) line(&o, number, &(s), sizeof(s), 0)

TEST(an_allocation_names_its_object_by_order)
{
    struct bh_objects o = {0};
    struct rm_alloc root = {.object = 0xc1d00001, .class = RM_CLASS_CLIENT};
    struct rm_alloc device = {.client = 0xc1d00001,
                              .parent = 0xc1d00001,
                              .object = 0x5c000001,
                              .class = RM_CLASS_DEVICE,
                              .params = 1,
                              .params_size = 56,
                              .flags = 3};
    struct rm_alloc_short sub = {.client = 0xc1d00001,
                                 .parent = 0x5c000001,
                                 .object = 0x5c000002,
                                 .class = RM_CLASS_SUBDEVICE,
                                 .params_size = 4};
    struct rm_alloc failed = {.client = 0xc1d00001,
                              .parent = 0x5c000002,
                              .object = 0x5c000003,
                              .class = RM_CLASS_CHANNEL_GROUP,
                              .status = RM_INVALID_CLASS};
    CHECK_STR(LINE(RM_ALLOC, root), "ctl alloc 48 class 41 new #1 in #0 params 0 flags 0");
    CHECK_STR(LINE(RM_ALLOC, device), "ctl alloc 48 class 80 new #2 in #1 params 56 flags 3");
    CHECK_STR(LINE(RM_ALLOC, sub), "ctl alloc 32 class 2080 new #3 in #2 params 4 flags 0");
    CHECK_STR(LINE(RM_ALLOC, failed), "ctl alloc 48 class a06c new #0 in #3 params 0 flags 0 status 22");
    CHECK_EQ(o.made, 3);
    bh_objects_fini(&o);
}

TEST(memory_says_how_much_and_of_which_kind)
{
    struct bh_objects o = {0};
    struct rm_alloc a = {.object = 5, .class = RM_CLASS_MEMORY_LOCAL, .params = 0x1000, .params_size = 128};
    params = (struct rm_memory_params){.size = 2 << 20, .attr = 0x11000000, .attr2 = 5, .flags = 0x1c101};
    CHECK_STR(LINE(RM_ALLOC, a), "ctl alloc 48 class 40 new #1 in #0 params 128 flags 0 size 2097152 attr "
                                 "11000000 attr2 5 mflags 1c101");
    a.params_size = 0; /* the driver knows the size from the class */
    CHECK(strstr(LINE(RM_ALLOC, a), "params 0 flags 0 size 2097152"));
    a.class = RM_CLASS_MEMORY_VIRTUAL; /* two structures: without a size it is not known which */
    CHECK_STR(LINE(RM_ALLOC, a), "ctl alloc 48 class 70 new #3 in #0 params 0 flags 0");
    a.class = RM_CLASS_MEMORY_LOCAL;
    a.params = 0x2000; /* cannot be read */
    CHECK_STR(LINE(RM_ALLOC, a), "ctl alloc 48 class 40 new #4 in #0 params 0 flags 0");
    reads = 0;
    a.class = RM_CLASS_VASPACE; /* nothing of other classes is looked at */
    a.params = 0x1000;
    a.params_size = 128;
    CHECK_STR(LINE(RM_ALLOC, a), "ctl alloc 48 class 90f1 new #5 in #0 params 128 flags 0");
    CHECK_EQ(reads, 0);
    bh_objects_fini(&o);
}

TEST(controls_frees_and_duplicates_follow_objects)
{
    struct bh_objects o = {0};
    struct rm_alloc root = {.object = 1, .class = RM_CLASS_CLIENT},
                    other = {.object = 2, .class = RM_CLASS_CLIENT},
                    memory = {.client = 1, .parent = 1, .object = 9, .class = RM_CLASS_EVENT};
    struct rm_control c = {.client = 1,
                           .object = 9,
                           .command = RM_CTRL_FB_GET_INFO_V2,
                           .params_size = 1028,
                           .status = RM_NOT_SUPPORTED};
    struct rm_dup d = {
        .client = 2, .parent = 2, .object = 9, .source_client = 1, .source_object = 9, .flags = 1};
    struct rm_free f = {.client = 1, .parent = 1, .object = 9};
    LINE(RM_ALLOC, root);
    LINE(RM_ALLOC, other);
    LINE(RM_ALLOC, memory);
    CHECK_STR(LINE(RM_CONTROL, c), "ctl control 32 command 20801303 on #3 params 1028 flags 0 status 56");
    CHECK_STR(LINE(RM_DUP_OBJECT, d), "ctl dup 28 class 5 new #4 in #2 from #3 flags 1");
    CHECK_STR(LINE(RM_FREE, f), "ctl free 16 #3");
    CHECK_STR(LINE(RM_FREE, f), "ctl free 16 #0");
    c.client = 2;
    CHECK(strstr(LINE(RM_CONTROL, c), "on #4"));
    d.source_object = 77; /* never seen: its class is not known, and it is no client for that */
    d.object = 10;
    CHECK_STR(LINE(RM_DUP_OBJECT, d), "ctl dup 28 class 0 new #5 in #2 from #0 flags 1");
    f = (struct rm_free){.client = 2, .object = 2}; /* a client takes its objects along */
    CHECK_STR(LINE(RM_FREE, f), "ctl free 16 #2");
    CHECK(strstr(LINE(RM_CONTROL, c), "on #0"));
    bh_objects_fini(&o);
}

TEST(the_heap_and_pinned_memory_make_objects_too)
{
    struct bh_objects o = {0};
    struct rm_vid_heap h = {.client = 1,
                            .parent = 1,
                            .function = RM_HEAP_ALLOC_SIZE,
                            .memory = 7,
                            .size = 65536,
                            .attr = 2,
                            .attr2 = 3,
                            .flags = 4};
    struct rm_alloc_memory m = {
        .client = 1, .parent = 1, .object = 8, .class = RM_CLASS_MEMORY_OS, .flags = 0x10, .limit = 4095};
    CHECK_STR(LINE(RM_VID_HEAP_CONTROL, h), "ctl heap 184 function 2 new #1 in #0 size 65536 attr 2 attr2 3 "
                                            "mflags 4");
    CHECK_STR(LINE(RM_ALLOC_MEMORY, m), "ctl memory 56 class 71 new #2 in #0 flags 10 size 4096");
    h.function = RM_HEAP_FREE;
    CHECK_STR(LINE(RM_VID_HEAP_CONTROL, h), "ctl heap 184 function 3 new #1 in #0");
    CHECK_STR(LINE(RM_VID_HEAP_CONTROL, h), "ctl heap 184 function 3 new #0 in #0");
    h.function = 5;
    CHECK_STR(LINE(RM_VID_HEAP_CONTROL, h), "ctl heap 184 function 5 new #0 in #0");
    bh_objects_fini(&o);
}

/* What a failed call left in the structure is not the driver's word. */
TEST(a_failed_call_makes_nothing)
{
    struct bh_objects o = {0};
    struct rm_alloc a = {.object = 5, .class = RM_CLASS_CLIENT, .status = 0};
    struct rm_control c = {.command = 1, .status = 0x56};
    CHECK_STR(line(&o, RM_ALLOC, &a, sizeof(a), 25),
              "ctl alloc 48 class 41 new #0 in #0 params 0 flags 0 errno 25");
    CHECK_STR(line(&o, RM_CONTROL, &c, sizeof(c), 14),
              "ctl control 32 command 1 on #0 params 0 flags 0 errno 14");
    CHECK_EQ(o.made, 0);
    bh_objects_fini(&o);
}

TEST(other_numbers_and_sizes_are_escapes)
{
    struct bh_objects o = {0};
    unsigned char bytes[72] = {0};
    bytes[40] = 0x1f;
    CHECK_STR(line(&o, RM_CHECK_VERSION, bytes, 72, 0), "ctl escape d2 72");
    CHECK_STR(line(&o, RM_MAP_MEMORY, bytes, 56, 0), "ctl escape 4e 56 status 1f");
    CHECK_STR(line(&o, RM_MAP_MEMORY, bytes, 64, 0), "ctl escape 4e 64"); /* another structure */
    CHECK_STR(line(&o, RM_ALLOC, bytes, 56, 0), "ctl escape 2b 56");      /* a driver to come */
    bytes[20] = 0x1b;
    CHECK_STR(line(&o, RM_SHARE, bytes, 24, 0), "ctl escape 35 24 status 1b");
    bytes[12] = 0x40;
    CHECK_STR(line(&o, RM_ALLOC_OS_EVENT, bytes, 16, 0), "ctl escape ce 16 status 40");
    bh_objects_fini(&o);
}

TEST(a_structure_that_cannot_be_read_is_only_counted)
{
    struct bh_objects o = {0};
    struct bh_call call;
    struct bh_ioctl in = {.file = BH_FILE_GPU, .gpu = 3, .cmd = RM_IOC(RM_ALLOC, 48), .read = read_params};
    bh_ioctl_decode(&o, &in, &call);
    CHECK(call.kind == BH_CALL_ESCAPE && call.number == RM_ALLOC && call.bytes == 48 && call.gpu == 3);
    in = (struct bh_ioctl){.file = BH_FILE_UVM, .cmd = UVM_REGISTER_GPU};
    bh_ioctl_decode(&o, &in, &call);
    CHECK(call.kind == BH_CALL_UVM && call.number == UVM_REGISTER_GPU && call.status == 0);
    bh_objects_fini(&o);
}

TEST(uvm_calls_keep_their_status)
{
    struct bh_objects o = {0};
    struct bh_call call;
    unsigned char bytes[9264] = {0};
    bytes[9260] = 0x51;
    bytes[36] = 0x1b;
    struct bh_ioctl in = {.file = BH_FILE_UVM, .cmd = UVM_MAP_EXTERNAL, .bytes = bytes, .n = sizeof(bytes)};
    bh_ioctl_decode(&o, &in, &call);
    CHECK_EQ(call.status, 0x51);
    CHECK_EQ(call.bytes, 0);
    in.cmd = UVM_REGISTER_GPU;
    bh_ioctl_decode(&o, &in, &call);
    CHECK_EQ(call.status, 0x1b);
    in.cmd = 4711; /* not known: no status is made up */
    bh_ioctl_decode(&o, &in, &call);
    CHECK(call.number == 4711 && call.status == 0);
    CHECK_EQ(bh_ioctl_bytes(BH_FILE_UVM, UVM_MAP_EXTERNAL), 9264);
    CHECK_EQ(bh_ioctl_bytes(BH_FILE_UVM, 4711), 0);
    CHECK_EQ(bh_ioctl_bytes(BH_FILE_UVM_TOOLS, UVM_MAP_EXTERNAL), 0);
    CHECK_EQ(bh_ioctl_bytes(BH_FILE_CTL, RM_IOC(RM_ALLOC, 48)), 48);
    CHECK_EQ(bh_ioctl_bytes(BH_FILE_CTL, UINT32_MAX), BH_IOCTL_BYTES_MAX - 1);
    bh_objects_fini(&o);
}

TEST(thousands_of_objects_keep_their_numbers)
{
    enum { N = 5000 };
    struct bh_objects o = {0};
    for (uint32_t i = 1; i <= N; i++) {
        struct rm_alloc a = {.client = 7, .object = i * 16, .class = RM_CLASS_EVENT};
        LINE(RM_ALLOC, a);
    }
    for (uint32_t i = 1; i <= N; i++) {
        struct bh_call call;
        struct rm_free f = {.client = 7, .object = i * 16};
        struct bh_ioctl in = {.cmd = RM_IOC(RM_FREE, sizeof(f)), .bytes = &f, .n = sizeof(f)};
        bh_ioctl_decode(&o, &in, &call);
        CHECK_EQ(call.object, i);
    }
    bh_objects_fini(&o);
}

TEST(paths_name_files)
{
    static const struct {
        const char *path;
        int file, gpu; /* -1: none of NVIDIA's */
    } PATHS[] = {
        {"/dev/nvidiactl", BH_FILE_CTL, 0},
        {"/dev/nvidia0", BH_FILE_GPU, 0},
        {"/dev/nvidia17", BH_FILE_GPU, 17},
        {"/dev/nvidia256", BH_FILE_OTHER, 0},
        {"/dev/nvidia-uvm", BH_FILE_UVM, 0},
        {"/dev/nvidia-uvm-tools", BH_FILE_UVM_TOOLS, 0},
        {"/dev/nvidia-modeset", BH_FILE_MODESET, 0},
        {"/dev/nvidia-caps/nvidia-cap1", BH_FILE_CAP, 0},
        {"/dev/nvidia-fs0", BH_FILE_OTHER, 0},
        {"/dev/null", -1, 0},
        {"/dev", -1, 0},
        {"/devices/nvidia0", -1, 0},
        {"/proc/driver/nvidia0", -1, 0},
    };
    for (size_t i = 0; i < BH_COUNT_OF(PATHS); i++) {
        uint8_t file = 0, gpu = 0;
        bool is = bh_call_file("/dev", PATHS[i].path, &file, &gpu);
        CHECK_EQ(is ? file : -1, PATHS[i].file);
        CHECK_EQ(is ? gpu : 0, PATHS[i].gpu);
    }
}

TEST_MAIN
