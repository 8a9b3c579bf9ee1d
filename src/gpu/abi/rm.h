/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rm.h - the part of the NVIDIA kernel driver's ioctl interface that is used here, and no more.
 *
 * Facts of the 580 branch, written for this project: numbers, sizes and offsets. The driver looks at the low
 * eight bits of a command only (its "number") and at the size in it. Every structure ends in, or carries, a
 * status of the resource manager; the ioctl itself then returns 0. Handles are 32-bit names that a client
 * chooses or is given; a client is the root of a tree of objects and belongs to the open file it was made on.
 */
#ifndef BH_GPU_ABI_RM_H
#define BH_GPU_ABI_RM_H

#include <stddef.h>
#include <stdint.h>

/* Numbers of the control and GPU files: _IOWR('F', number, structure). */
enum rm_number {
    RM_ALLOC_MEMORY = 0x27,
    RM_ALLOC_OBJECT = 0x28,
    RM_FREE = 0x29,
    RM_CONTROL = 0x2a,
    RM_ALLOC = 0x2b,
    RM_DUP_OBJECT = 0x34,
    RM_SHARE = 0x35,
    RM_VID_HEAP_CONTROL = 0x4a,
    RM_MAP_MEMORY = 0x4e,
    RM_UNMAP_MEMORY = 0x4f,
    RM_MAP_MEMORY_DMA = 0x57,
    RM_UNMAP_MEMORY_DMA = 0x58,
    RM_CARD_INFO = 200,
    RM_REGISTER_FD = 201,
    RM_ALLOC_OS_EVENT = 206,
    RM_FREE_OS_EVENT = 207,
    RM_STATUS_CODE = 209,
    RM_CHECK_VERSION = 210,
    RM_XFER_CMD = 211,
    RM_ATTACH_GPUS = 212,
    RM_QUERY_INTR = 213,
    RM_SYS_PARAMS = 214,
    RM_EXPORT_DMABUF = 217,
    RM_WAIT_OPEN_COMPLETE = 218,
};

#define RM_IOC(number, size) \
    (UINT32_C(0xc0000000) | (uint32_t)(size) << 16 | UINT32_C(0x4600) | (uint32_t)(number))
#define RM_IOC_NUMBER(cmd) ((uint32_t)(cmd) & 0xff)
#define RM_IOC_SIZE(cmd)   ((uint32_t)(cmd) >> 16 & 0x3fff)

/* The UVM file takes plain numbers, without size or type. */
enum uvm_number {
    UVM_DEINITIALIZE = 0x30000002,
#define UVM_CALL(name, number, bytes, status) UVM_##name = number,
#include "gpu/abi/uvm.def"
#undef UVM_CALL
};

enum rm_status {
    RM_OK = 0x00,
    RM_CARD_NOT_PRESENT = 0x05,
    RM_GPU_IS_LOST = 0x0f,
    RM_INSERT_DUPLICATE_NAME = 0x19,
    RM_INSUFFICIENT_RESOURCES = 0x1a,
    RM_INSUFFICIENT_PERMISSIONS = 0x1b,
    RM_INVALID_ARGUMENT = 0x1f,
    RM_INVALID_CHANNEL = 0x21,
    RM_INVALID_CLASS = 0x22,
    RM_INVALID_CLIENT = 0x23,
    RM_INVALID_COMMAND = 0x24,
    RM_INVALID_DEVICE = 0x26,
    RM_INVALID_LIMIT = 0x2e,
    RM_INVALID_OBJECT = 0x31,
    RM_INVALID_OBJECT_HANDLE = 0x33,
    RM_INVALID_OBJECT_PARENT = 0x36,
    RM_INVALID_PARAM_STRUCT = 0x3a,
    RM_INVALID_STATE = 0x40,
    RM_STATE_IN_USE = 0x63,
    RM_NO_MEMORY = 0x51,
    RM_NOT_SUPPORTED = 0x56,
    RM_OBJECT_NOT_FOUND = 0x57,
};

enum rm_class {
    RM_CLASS_ROOT = 0x0000,
    RM_CLASS_EVENT = 0x0005,
    RM_CLASS_MEMORY_SYSTEM = 0x003e,
    RM_CLASS_MEMORY_LOCAL_PRIVILEGED = 0x003f,
    RM_CLASS_MEMORY_LOCAL = 0x0040,
    RM_CLASS_CLIENT = 0x0041,
    RM_CLASS_MEMORY_EXTENDED = 0x0042,
    RM_CLASS_MEMORY_VIRTUAL = 0x0070,
    RM_CLASS_MEMORY_OS = 0x0071,
    RM_CLASS_EVENT_OS = 0x0079,
    RM_CLASS_DEVICE = 0x0080,
    RM_CLASS_SHARED_DATA = 0x00de, /* a page of the card's own numbers, to be mapped */
    RM_CLASS_MEMORY_PHYSICAL = 0x00c2,
    RM_CLASS_MEMORY_FABRIC = 0x00f8,
    RM_CLASS_SUBDEVICE = 0x2080,
    RM_CLASS_THIRD_PARTY = 0x503c, /* memory made known to other devices, such as an RDMA adapter */
    RM_CLASS_VIRTUAL_RANGE = 0x50a0,
    RM_CLASS_CONTEXT_SHARE = 0x9067,
    RM_CLASS_EVENT_BUFFER = 0x90cd,
    RM_CLASS_MEMORY_DEVICELESS = 0x90ce, /* system memory of a client, for an event buffer */
    RM_CLASS_VASPACE = 0x90f1,
    RM_CLASS_CHANNEL_GROUP = 0xa06c,
    RM_CLASS_USERMODE_AMPERE = 0xc561,
    RM_CLASS_CHANNEL_AMPERE = 0xc56f,
    RM_CLASS_SMC_PARTITION = 0xc637,
    RM_CLASS_SMC_EXEC = 0xc638,
    RM_CLASS_CHANNEL_HOPPER = 0xc86f,
};

enum rm_command {
    RM_CTRL_ID_INFO = 0x205,
    RM_CTRL_PROBED_IDS = 0x214,
    RM_CTRL_ATTACH_IDS = 0x215,
    RM_CTRL_SHARED_DATA_POLL = 0x00de0001, /* u64, which numbers of the page to bring up to date */
    RM_CTRL_FB_GET_INFO = 0x20801301,      /* the same as the next, with the list behind a pointer */
    RM_CTRL_FB_GET_INFO_V2 = 0x20801303,   /* pairs of index and value */
    RM_CTRL_PERF_USE_SAMPLES = 0x20802096,
    RM_CTRL_TIMER_GET_TIME = 0x20800403,   /* u64, nanoseconds on the card's clock, since the epoch */
    RM_CTRL_GR_BIND_SWITCHES = 0x20801238, /* writes turns on the card into an event buffer; for root */
    RM_CTRL_EVENT_BUFFER_ENABLE = 0x90cd0101,
    RM_CTRL_EVENT_BUFFER_GET = 0x90cd0102,   /* records up to here were read */
    RM_CTRL_EVENT_BUFFER_FLUSH = 0x90cd0104, /* no params: what the card has still by itself, too */
    RM_CTRL_GPU_GET_PIDS = 0x2080018d,
    RM_CTRL_GPU_GET_PID_INFO = 0x2080018e,
    RM_CTRL_FIFO_DISABLE_CHANNELS = 0x2080110b,
    RM_CTRL_GROUP_SCHEDULE = 0xa06c0101,
    RM_CTRL_GROUP_SET_TIMESLICE = 0xa06c0103, /* u64, microseconds */
    RM_CTRL_GROUP_GET_TIMESLICE = 0xa06c0104,
    RM_CTRL_GROUP_PREEMPT = 0xa06c0105,
    RM_CTRL_GROUP_SET_INTERLEAVE = 0xa06c0107, /* u32: 0 low, 1 medium, 2 high */
};

struct rm_alloc { /* the long form of RM_ALLOC */
    uint32_t client, parent, object, class;
    uint64_t params, rights;
    uint32_t params_size, flags, status, pad;
};
struct rm_alloc_short { /* the short form of RM_ALLOC: told apart by its size */
    uint32_t client, parent, object, class;
    uint64_t params;
    uint32_t params_size, status;
};
struct rm_free {
    uint32_t client, parent, object, status;
};
struct rm_control {
    uint32_t client, object, command, flags;
    uint64_t params;
    uint32_t params_size, status;
};
struct rm_dup {
    uint32_t client, parent, object, source_client, source_object, flags, status;
};
/* How cards are found: RM_CARD_INFO, then RM_CTRL_PROBED_IDS, RM_CTRL_ID_INFO and RM_CTRL_ATTACH_IDS of a client. */
enum { RM_CARDS = 32 };
struct rm_card {
    uint8_t valid, head[15];
    uint32_t id;
    uint8_t mid[36];
    uint32_t minor;
    uint8_t tail[12];
};
struct rm_probed_ids {
    uint32_t ids[RM_CARDS], excluded[RM_CARDS], rest[RM_CARDS]; /* all ones: none */
};
struct rm_attach_ids {
    uint32_t ids[RM_CARDS], failed;
};
struct rm_id_info {
    uint32_t id, flags, device, subdevice, rest[4];
};
struct rm_share { /* on an object or, for all that a client has, on the client itself */
    uint32_t client, object, target, rights; /* target: by type, a client's handle or a pid */
    uint16_t type;                           /* enum rm_share_type */
    uint8_t action, pad; /* RM_SHARE_REVOKE, RM_SHARE_ADD; 0 replaces what was shared before */
    uint32_t status;
};
struct rm_alloc_memory { /* RM_ALLOC_MEMORY, with the file descriptor behind it */
    uint32_t client, parent, object, class, flags, pad;
    uint64_t memory, limit; /* limit: bytes less one */
    uint32_t status, pad2;
    int32_t fd;
    uint32_t pad3;
};
struct rm_map_memory { /* with the file descriptor behind it */
    uint32_t client, device, memory, pad;
    uint64_t offset, length, address;
    uint32_t status, flags;
    int32_t fd;
    uint32_t pad2;
};
struct rm_vid_heap { /* the union at 40 in its ALLOC_SIZE shape */
    uint32_t client, parent, function, vas, pad, status;
    uint64_t total, free;
    uint32_t owner, memory, type, flags, attr;
    uint8_t pad2[28];
    uint64_t size;
    uint8_t pad3[48];
    uint32_t attr2;
    uint8_t pad4[36];
};
/* What RM_ALLOC's params are for the classes of memory. Size goes in as asked and comes back as given. */
struct rm_memory_params {
    uint32_t owner, type, flags, width, height;
    int32_t pitch;
    uint32_t attr, attr2, format, compression, zcull, pad;
    uint64_t range_low, range_high, size, alignment, offset, limit, address;
    uint32_t context_dma, ctag, internal_flags, tag;
    int32_t numa_node;
    uint32_t pad2;
};
struct rm_disable_channels { /* params of RM_CTRL_FIFO_DISABLE_CHANNELS */
    uint8_t disable, pad[3];
    uint32_t count;
    uint8_t only_scheduling, rewind, pad2[6];
    uint64_t event;
    uint32_t clients[64], channels[64];
};

/* Params of RM_ALLOC for a device, a subdevice (4 bytes: its number, 0) and a subscription to a GPU instance. */
struct rm_device_params {
    uint32_t device, client_share, target_client, target_device, flags, pad; /* device: the GPU's number */
    uint64_t va_size, va_start, va_limit;
    uint32_t va_mode, pad2;
};
struct rm_partition_params {
    uint64_t capability; /* descriptor of the instance's file below /dev/nvidia-caps; 0: none is shown */
    uint32_t gi, pad;
};
/* Params of RM_CTRL_FB_GET_INFO_V2. Sizes are in KiB, and those of the GPU instance the client subscribed to. */
struct rm_fb_info {
    uint32_t count;
    struct {
        uint32_t index, value; /* index: enum rm_fb_index */
    } at[128];
};
struct rm_fb_info_list { /* params of RM_CTRL_FB_GET_INFO */
    uint32_t count, pad;
    uint64_t list; /* pointer to pairs */
};
/* Params of RM_CTRL_GPU_GET_PIDS: processes that hold an object of class `id` on this GPU. */
struct rm_pids {
    uint32_t id_type, id, count, pids[950]; /* id_type 0: a class */
};
/* Params of RM_CTRL_GPU_GET_PID_INFO: for each pid that goes in, what it has of video memory. */
struct rm_pid_info {
    uint32_t count, pad;
    struct {
        uint32_t pid, index, result, pad; /* index 0: video memory; result: enum rm_status */
        uint64_t own, shared_owned, shared_duped, protected_own, protected_shared_owned,
            protected_shared_duped;
        uint32_t ci, gi; /* all ones: not on an instance */
    } at[200];
};

/* Params of RM_CTRL_PERF_USE_SAMPLES: who was seen on which engine, in a ring. */
struct rm_engine_use {
    uint32_t use, scale, pid, guest_pid; /* use: percent of percent; pid all ones: nobody */
    char guest_name[100];
    uint8_t pad[4];
    uint64_t process;
};
enum { RM_SAMPLES_USE = 2 };
struct rm_use_samples {
    uint8_t type, pad[3];           /* RM_SAMPLES_USE */
    uint32_t bytes, count, tracker; /* bytes: of the samples, says who asks */
    struct {
        uint64_t at; /* its end, on the card's clock; measured: it is of all the time since the last */
        struct rm_engine_use
            engines[6]; /* memory, graphics and compute, encoder, decoder, JPEG, optical flow */
    } samples[72];
};

/*
 * Who has the card when. The driver writes a record of each beginning and end of a turn into a ring in memory that it shares
 * with the client: put is where it writes next, get where the client reads next, and the ring is full one before get.
 */
struct rm_event_buffer_params { /* of RM_ALLOC for RM_CLASS_EVENT_BUFFER, below the client */
    uint64_t header_address, records_address;
    uint32_t record_size, record_count;
    uint64_t variable_address;
    uint32_t variable_size, free_threshold;
    uint64_t notify;
    uint32_t variable_threshold, subdevice, flags;
    uint32_t header, records, variable; /* objects of RM_CLASS_MEMORY_DEVICELESS that a user may only read */
};
struct rm_event_buffer_head { /* begins the header's memory */
    uint32_t get, put;
    uint64_t count, dropped, variable_dropped; /* dropped: where the oldest are kept */
};
struct rm_bind_switches {                         /* params of RM_CTRL_GR_BIND_SWITCHES */
    uint32_t buffer, record_size, detail, filter; /* record_size: of what follows a record's head */
    uint8_t all_users, pad[3];
    uint32_t reason; /* why not */
};
struct rm_event_buffer_enable {
    uint8_t on, pad[3];
    uint32_t keep; /* RM_KEEP_OLDEST: of a full ring */
};
struct rm_event_buffer_get {
    uint32_t get, variable_get;
};
struct rm_switch_record {
    uint16_t type, subtype; /* type: RM_RECORD_SWITCH */
    uint32_t variable;
    uint8_t tag, vmid; /* tag: RM_TURN_BEGINS, RM_TURN_ENDS, as the details asked for (0) have it */
    uint16_t seq;      /* of the buffer: a gap is a record that was lost */
    uint32_t context,
        pid; /* pid 0: hidden from this user; all ones: the kernel's, or of a channel that is gone */
    uint16_t pad;
    uint8_t gi, ci;
    uint64_t at_ns; /* the card's clock, in steps of 32; of the kernel's own turns not exact, and 0 allowed */
};
enum {
    RM_KEEP_OLDEST = 1,
    RM_RECORD_SWITCH = 2,
    RM_TURN_BEGINS = 6,
    RM_TURN_ENDS = 7,
};

enum rm_share_type { RM_SHARE_ALL = 1, RM_SHARE_CLIENT = 3, RM_SHARE_PID = 4, RM_SHARE_TYPES = 8 };
enum { RM_SHARE_REVOKE = 1, RM_SHARE_ADD = 4, RM_RIGHT_DUP = 1 };

enum rm_fb_index {
    RM_FB_BAR1_SIZE = 0x05, /* the processor's window */
    RM_FB_RAM_SIZE = 0x07,
    RM_FB_TOTAL_RAM = 0x08,
    RM_FB_HEAP_SIZE = 0x09, /* what is there less what the driver keeps for itself */
    RM_FB_MAPPABLE_HEAP = 0x0a,
    RM_FB_TAX = 0x10,
    RM_FB_LARGEST_FREE = 0x12,
    RM_FB_LARGEST_FREE_BASE = 0x13,
    RM_FB_RESERVED_HEAP = 0x15,
    RM_FB_HEAP_FREE = 0x16,
    RM_FB_BAR1_FREE = 0x1d,
    RM_FB_BAR1_LARGEST_FREE = 0x1f,
    RM_FB_USABLE_RAM = 0x20,
    RM_FB_PROTECTED_TOTAL = 0x33,
    RM_FB_PROTECTED_FREE = 0x34,
};

enum {
    RM_HEAP_ALLOC_SIZE = 2,
    RM_HEAP_FREE = 3,
    RM_ATTR_LOCATION = 3 << 25, /* of attr; 0: video memory */
    RM_ATTR2_USER_READ_ONLY = 1 << 22,
    RM_MAP_READ_ONLY = 1,             /* of a mapping's flags */
    RM_MEMORY_FLAG_VIRTUAL = 0x80000, /* of flags: address space only */
};

#define RM_ATTR_WRITE_BACK (UINT32_C(5) << 29) /* of attr */

#define RM_SIZE(s, n)       _Static_assert(sizeof(struct s) == (n), #s " has another size")
#define RM_AT(s, field, at) _Static_assert(offsetof(struct s, field) == (at), #s "." #field " is elsewhere")
RM_SIZE(rm_alloc, 48);
RM_AT(rm_alloc, params_size, 32);
RM_AT(rm_alloc, status, 40);
RM_SIZE(rm_alloc_short, 32);
RM_AT(rm_alloc_short, status, 28);
RM_SIZE(rm_free, 16);
RM_SIZE(rm_control, 32);
RM_AT(rm_control, status, 28);
RM_SIZE(rm_dup, 28);
RM_SIZE(rm_card, 72);
RM_AT(rm_card, minor, 56);
RM_SIZE(rm_probed_ids, 384);
RM_SIZE(rm_attach_ids, 132);
RM_SIZE(rm_id_info, 32);
RM_SIZE(rm_share, 24);
RM_AT(rm_share, status, 20);
RM_SIZE(rm_alloc_memory, 56);
RM_AT(rm_alloc_memory, limit, 32);
RM_AT(rm_alloc_memory, status, 40);
RM_SIZE(rm_map_memory, 56);
RM_AT(rm_map_memory, status, 40);
RM_SIZE(rm_vid_heap, 184);
RM_AT(rm_vid_heap, memory, 44);
RM_AT(rm_vid_heap, flags, 52);
RM_AT(rm_vid_heap, attr, 56);
RM_AT(rm_vid_heap, size, 88);
RM_AT(rm_vid_heap, attr2, 144);
RM_SIZE(rm_memory_params, 128);
RM_AT(rm_memory_params, attr, 24);
RM_AT(rm_memory_params, size, 64);
RM_AT(rm_memory_params, alignment, 72);
RM_AT(rm_memory_params, address, 96);
RM_AT(rm_memory_params, internal_flags, 112);
RM_AT(rm_memory_params, numa_node, 120);
RM_SIZE(rm_disable_channels, 536);
RM_AT(rm_disable_channels, clients, 24);
RM_AT(rm_disable_channels, channels, 280);
RM_SIZE(rm_device_params, 56);
RM_AT(rm_device_params, va_size, 24);
RM_SIZE(rm_partition_params, 16);
RM_AT(rm_partition_params, gi, 8);
RM_SIZE(rm_fb_info, 1028);
RM_SIZE(rm_fb_info_list, 16);
RM_SIZE(rm_pids, 3812);
RM_SIZE(rm_engine_use, 128);
RM_AT(rm_engine_use, process, 120);
RM_SIZE(rm_use_samples, 55888);
RM_SIZE(rm_pid_info, 14408);
RM_SIZE(rm_event_buffer_params, 72);
RM_AT(rm_event_buffer_params, record_size, 16);
RM_AT(rm_event_buffer_params, notify, 40);
RM_AT(rm_event_buffer_params, subdevice, 52);
RM_AT(rm_event_buffer_params, records, 64);
RM_SIZE(rm_event_buffer_head, 32);
RM_AT(rm_event_buffer_head, dropped, 16);
RM_SIZE(rm_bind_switches, 24);
RM_AT(rm_bind_switches, all_users, 16);
RM_AT(rm_bind_switches, reason, 20);
RM_SIZE(rm_event_buffer_enable, 8);
RM_SIZE(rm_event_buffer_get, 8);
RM_SIZE(rm_switch_record, 32);
RM_AT(rm_switch_record, tag, 8);
RM_AT(rm_switch_record, seq, 10);
RM_AT(rm_switch_record, pid, 16);
RM_AT(rm_switch_record, at_ns, 24);

#endif
