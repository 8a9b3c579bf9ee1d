/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - what a program asked the NVIDIA kernel driver for, as shapes.
 *
 * A recording keeps for each call: which file, which number, the sizes, the class or command, flags, and the
 * status that came back; never a pointer, a handle or what was in a buffer. Objects are named by the order in
 * which they were made (#1, #2 ...; #0: none or unknown), so two recordings of the same program can be
 * compared.
 *
 * As text, one line a call, fields in this order and no others:
 *
 *     bulkhead-recording 1
 *     driver 580.159.04
 *     gpu NVIDIA H200
 *     what one process, every way to obtain memory
 *     mark start
 *     open ctl
 *     ctl escape d2 72
 *     ctl alloc 48 class 41 new #1 in #0 params 0 flags 0
 *     ctl alloc 48 class 40 new #9 in #3 params 128 flags 0 size 67108864 attr 11000000 attr2 0 mflags 1c101
 *     ctl control 32 command 20801303 on #4 params 1028 flags 0
 *     ctl control 32 command 20800110 on #4 params 64 flags 0 status 56
 *     gpu0 free 16 #9
 *     ctl dup 28 class 40 new #12 in #3 from #9 flags 0
 *     ctl heap 184 function 2 new #13 in #3 size 2097152 attr 0 attr2 0 mflags 0
 *     ctl memory 56 class 71 new #14 in #3 flags 10 size 4096
 *     uvm call 37
 *     map uvm 2097152 prot 3 flags 22
 *     close ctl
 *     process 2
 *     end 1234 89abcdef
 *
 * Numbers are decimal for sizes, counts, errno and UVM calls, hexadecimal for the rest. ` status S` follows
 * when the resource manager's status was not 0, ` errno N` when the system call failed. A line repeated at
 * once carries ` times N`. The last line is the number of lines before it and a 32-bit FNV-1a sum of their
 * bytes: a recording that was cut or changed by hand is refused. There is one way to write a recording: what
 * was parsed is written back byte for byte. Texts are printable ASCII; one that is not known is `-`.
 */
#ifndef BH_RECORD_RECORD_H
#define BH_RECORD_RECORD_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

enum bh_call_file {
    BH_FILE_CTL,
    BH_FILE_GPU,
    BH_FILE_UVM,
    BH_FILE_UVM_TOOLS,
    BH_FILE_MODESET,
    BH_FILE_CAP,
    BH_FILE_OTHER
};

enum bh_call_kind {
    BH_CALL_MARK,    /* text: a name given by the program; what follows belongs to it */
    BH_CALL_PROCESS, /* what follows was done by process `what` (1, 2 ... in order of appearance) */
    BH_CALL_OPEN,
    BH_CALL_CLOSE,
    BH_CALL_MAP,     /* size, prot in `what`, flags */
    BH_CALL_ESCAPE,  /* any number without a shape of its own here */
    BH_CALL_ALLOC,   /* `what` is the class */
    BH_CALL_CONTROL, /* `what` is the command */
    BH_CALL_FREE,
    BH_CALL_DUP,
    BH_CALL_HEAP, /* RM_VID_HEAP_CONTROL; `what` is the function */
    BH_CALL_UVM,
    BH_CALL_MEMORY, /* RM_ALLOC_MEMORY; `what` is the class, `size` the bytes */
};

/* What a recording may hold; more is refused. */
enum { BH_RECORDING_CALLS_MAX = 1 << 20, BH_RECORDING_TEXT_MAX = 240, BH_RECORDING_BYTES_MAX = 64 << 20 };

struct bh_call {
    uint8_t kind, file; /* enum bh_call_kind, enum bh_call_file */
    uint8_t gpu;        /* of BH_FILE_GPU */
    uint32_t number;    /* of the ioctl */
    uint32_t bytes;     /* of its structure */
    uint32_t what;
    uint32_t object, parent, source; /* by order of making; 0: none */
    uint32_t params, flags, status;
    int32_t error; /* errno of the system call; 0: none */
    uint32_t times;
    /* memory only */
    bool memory;
    uint64_t size;
    uint32_t attr, attr2, mflags;
    const char *text; /* of a mark */
};

struct bh_recording {
    struct bh_arena arena;
    const char *driver, *gpu, *what; /* never NULL */
    BH_VEC(struct bh_call) calls;
};

void bh_recording_fini(struct bh_recording *r);
/* `name` stands in messages. Every refusal names it and the line. */
int bh_recording_parse(const char *name, const char *text, size_t n, struct bh_recording *ret,
                       struct bh_err *err) BH_MUST_USE;
/* A text as the header of a recording or a mark may carry it: cut, every other byte a `?`, never empty. */
const char *bh_recording_text(struct bh_arena *arena, const char *s);
void bh_recording_write(struct bh_buf *out, const struct bh_recording *r);
/* Adds a call; one that equals the call before it counts there instead (marks and processes never do). The
 * text of a mark is copied. */
void bh_recording_add(struct bh_recording *r, const struct bh_call *call);
const char *bh_call_file_name(uint8_t file); /* `ctl`, `gpu` (without its number) ... */
void bh_call_write(struct bh_buf *out, const struct bh_call *call);  /* one line, without its end */
bool bh_call_same(const struct bh_call *a, const struct bh_call *b); /* all but `times` */
/* The calls from `mark name` up to the next mark: first index and count; false: no such mark. */
bool bh_recording_section(const struct bh_recording *r, const char *name, size_t *ret_first, size_t *ret_n);

#endif
