/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every check, good and bad: the node of the fixture passes all of them, then one thing at a time is
 * spoiled. A check without a case here fails a test.
 */
#include "cli/doctor_fixture.h"

#include "base/str.h"
#include "core/policy/rule.h"

#include <errno.h>

typedef struct bh_doctor_fixture fixture;
static fixture x;
static struct bh_doctor d;

#define GPU(i)     (x.gpus.devices.at[i])
#define FILE_(id)  (x.node.files[BH_FILE_##id].text)
#define PROG(id)   (x.node.programs[BH_PROGRAM_##id])
#define PARAM(i)   (x.platform.params.at[i].value)
#define DENIED     ((struct bh_probe){BH_PROBE_DENIED, EPERM, 0})
#define ABSENT     ((struct bh_probe){BH_PROBE_ABSENT, ENOSYS, 0})
#define READ(v)    ((struct bh_reading){v, NULL})
#define NOT_READ   ((struct bh_reading){0, "not supported by this GPU"})
#define LINE_(id)  (x.node.lines[BH_LINE_##id].text)
#define NO_ANSWER  ((struct bh_reading){0, "the driver answered with error 999"})
#define UNREAD(id) (x.node.lines[BH_LINE_##id] = (struct bh_node_value){.why = "closed"})
#define ABSENT_LINE(id) \
    (x.node.lines[BH_LINE_##id] = (struct bh_node_value){.why = "no such file", .is_absent = true})
#define NO_GPUS(c) (x.facts.gpus = NULL, x.facts.gpus_err = (struct bh_err){c, "no NVIDIA driver library"})

/* check, what to spoil, the state it must give, modes taken, a part of what is seen */
#define CASES(C)                                                                                            \
    C("silicon.library", NO_GPUS(BH_NOT_FOUND), BROKEN, BH_MODE_ALL, "no NVIDIA driver library")            \
    C("silicon.gpus", x.gpus.devices.n = 0, BROKEN, BH_MODE_ALL, "no GPU")                                  \
    C("silicon.gpus", (GPU(1).alive = false, GPU(1).trouble = "lost"), BROKEN, 0,                           \
      "1 of 2 answer; GPU 1: lost")                                                                         \
    C("silicon.gpus", (GPU(0).alive = GPU(1).alive = false), BROKEN, BH_MODE_ALL, "no GPU of 2 answers")    \
    C("silicon.catalogue", GPU(1).model = NULL, ATTENTION, 0, "GPU 1 is not in the catalogue")              \
    C("silicon.memory", GPU(0).remap_pending = READ(1), ATTENTION, 0, "GPU 0: uncorrected")                 \
    C("silicon.memory", GPU(0).remap_failed = READ(1), BROKEN, 0, "worn out")                               \
    C("silicon.memory", (GPU(0).remap_failed = GPU(0).ecc_uncorrected_now = NOT_READ), UNKNOWN, 0,          \
      "not all error count")                                                                                \
    C("silicon.ecc", GPU(1).ecc_mode = GPU(1).ecc_pending = READ(0), ATTENTION, 0, "off on GPU 1")          \
    C("silicon.ecc", GPU(1).ecc_pending = READ(0), ATTENTION, 0, "next reset of GPU 1")                     \
    C("silicon.ecc", GPU(1).ecc_mode = NOT_READ, UNKNOWN, 0, "GPU 1")                                       \
    C("silicon.throttle", GPU(0).throttle = READ(1 << 6), ATTENTION, 0,                                     \
      "GPU 0 slowed down: too hot (hardware)")                                                              \
    C("silicon.throttle", GPU(0).throttle = READ(1), OK, 0, "no GPU is slowed down")                        \
    C("silicon.throttle", GPU(0).throttle = NOT_READ, UNKNOWN, 0, "GPU 0")                                  \
    C("silicon.mig", GPU(0).mig_pending = READ(1), ATTENTION, 0, "GPU 0 changes at the next reset")         \
    C("silicon.mig", GPU(1).instances.at[0].ci = BH_NO_ID, ATTENTION, 0, "GPU 1 has parts")                 \
    C("silicon.mig", GPU(1).instances.n = 0, ATTENTION, 0, "GPU 1 has parts")                               \
    C("silicon.mig", no_mig(), NOTE, BH_MODE_MIG, "no GPU here can be partitioned")                         \
    C("silicon.firmware", GPU(1).vbios = "96.00.99.00.02", ATTENTION, 0, "GPU 1")                           \
    C("silicon.firmware", GPU(0).gsp = "570.1", ATTENTION, 0, "GPU 0")                                      \
    C("silicon.firmware", GPU(0).vbios = GPU(1).vbios = NULL, UNKNOWN, 0, "GPUs 0, 1")                      \
    C("driver.module", (NO_GPUS(BH_NOT_FOUND), no_driver()), BROKEN, BH_MODE_ALL & ~BH_MODE_VM,             \
      "not loaded")                                                                                         \
    C("driver.module", no_driver(), UNKNOWN, 0, "it answers")                                               \
    C("driver.module", (no_driver(), x.gpus.simulated = true), NONE, 0, "simulated")                        \
    C("driver.match", NO_GPUS(BH_CONFLICT), BROKEN, 0, "different versions")                                \
    C("driver.match", x.platform.driver.text = "580.126.09", ATTENTION, 0, "kernel 580.126.09")             \
    C("driver.match", x.gpus.nvml = "13.580.126.09", ATTENTION, 0, "library 13.580.126.09")                 \
    C("driver.match", no_driver(), UNKNOWN, 0, "kernel's version")                                          \
    C("driver.advisories", x.gpus.driver = "580.65.06", ATTENTION, 0, "open, the worst CVE-")               \
    C("driver.advisories", x.gpus.driver = "570.211.01", ATTENTION, 0, "no more fixes")                     \
    C("driver.advisories", x.gpus.driver = "nonsense", UNKNOWN, 0, "not a version")                         \
    C("driver.branch", x.gpus.driver = "595.71.05", ATTENTION, BH_MODE_GATE, "not of branch 580")           \
    C("driver.profiling", PARAM(0) = "0", ATTENTION, 0, "open to everyone (RmProfilingAdminOnly: 0)")       \
    C("driver.profiling", no_params(), UNKNOWN, 0, "RmProfilingAdminOnly: not permitted")                   \
    C("driver.scrub", PARAM(2) = "A=1;RMDisableScrubOnFree=0x1;B=2", ATTENTION, BH_MODE_GATE | BH_MODE_MPS, \
      "off")                                                                                                \
    C("driver.scrub", PARAM(2) = "RMDisableScrubOnFree=0x0;B=2", OK, 0, "clears what is freed")             \
    C("driver.scrub", no_params(), UNKNOWN, BH_MODE_GATE | BH_MODE_MPS, "not permitted")                    \
    C("driver.imex", PARAM(1) = "0x1", ATTENTION, 0, "CreateImexChannel0: 0x1")                             \
    C("driver.imex", open_channel(), ATTENTION, 0, "channel0 is open to everyone (0666)")                   \
    C("driver.hmm", LINE_(UVM_DISABLE_HMM) = "N", ATTENTION, 0, "uvm_disable_hmm: N")                       \
    C("driver.persistence", x.node.persistenced = false, NOTE, 0, "no nvidia-pers")                         \
    C("driver.signed", LINE_(MODULE_TAINT) = "OE", ATTENTION, 0, "taint OE")                                \
    C("devices.nodes", x.node.gpus.at[1].exists = false, ATTENTION, 0, "/dev/nvidia1 is missing")           \
    C("devices.nodes", x.node.uvm.is_device = false, ATTENTION, NODE_MODES, "/dev/nvidia-uvm is no device") \
    C("devices.modes", x.node.gpus.at[0].mode = 0666, NOTE, 0, "/dev/nvidia0 (0666)")                       \
    C("devices.caps", x.node.caps.at[0].exists = false, ATTENTION, BH_MODE_MIG,                             \
      "nvidia-cap147 of a MIG slice")                                                                       \
    C("devices.caps", x.node.mig_config.mode = 0444, ATTENTION, 0, "nvidia-cap1 is open to everyone")

#define MORE_CASES(C)                                                                                        \
    C("fabric.links", GPU(1).links = READ(17), ATTENTION, 0, "GPU 1: fewer links")                           \
    C("fabric.links", GPU(0).links = GPU(1).links = READ(0), NONE, BH_MODE_NVLINK, "no NVLink")              \
    C("fabric.state", GPU(0).fabric_state = READ(2), BROKEN, BH_MODE_NVLINK, "GPU 0 has not joined")         \
    C("fabric.state", GPU(0).fabric_health = 1, ATTENTION, 0, "GPU 0: the fabric is unhealthy")              \
    C("fabric.state", GPU(0).fabric_health = 5 << 8, ATTENTION, 0, "GPU 0")                                  \
    C("fabric.domains", GPU(1).domain = "nvl-1", NOTE, 0, "GPU 1: another domain")                           \
    C("fabric.manager", no_fabric(), ATTENTION, 0, "no fabric manager")                                      \
    C("fabric.manager", PROG(FABRIC_MANAGER).version = "580.126.09", ATTENTION, 0, "with driver 580.159.03") \
    C("fabric.manager", FILE_(FABRIC_CONFIG) = "FABRIC_MODE=0\n", NOTE, 0, "no partitions")                  \
    C("kernel.rights", x.probes.caps &= ~(UINT64_C(1) << 19), ATTENTION, BH_MODE_GATE | BH_MODE_CONTAINER,   \
      "PTRACE")                                                                                              \
    C("kernel.rights", (x.probes.caps = 0, x.probes.is_root = false), UNKNOWN,                               \
      BH_MODE_GATE | BH_MODE_CONTAINER, "a plain user")                                                      \
    C("kernel.seccomp-notify", x.probes.notify = ABSENT, ATTENTION, BH_MODE_GATE,                            \
      "this kernel has no seccomp user")                                                                     \
    C("kernel.seccomp-notify", x.probes.notify.value = 40, ATTENTION, BH_MODE_GATE, "40 bytes")              \
    C("kernel.seccomp-notify", x.probes.listen = DENIED, ATTENTION, BH_MODE_GATE, "not permitted here")      \
    C("kernel.seccomp-notify", x.probes.listen = busy, ATTENTION, BH_MODE_GATE,                              \
      "does not work: Device or resource")                                                                   \
    C("kernel.seccomp-notify", (x.probes.listen = DENIED, x.probes.is_root = false), UNKNOWN, BH_MODE_GATE,  \
      "plain")                                                                                               \
    C("kernel.sync-wake", x.probes.sync = ABSENT, NOTE, 0, "this kernel has no")                             \
    C("kernel.pidfd", x.probes.pidfd = ABSENT, ATTENTION, BH_MODE_GATE, "this kernel has no pidfd_open")     \
    C("kernel.pidfd", (x.probes.getfd = DENIED, x.probes.is_filtered = true), ATTENTION, BH_MODE_GATE,       \
      "(a contain")                                                                                          \
    C("kernel.vm-read", (x.probes.vm_read = ABSENT, x.probes.is_filtered = true), ATTENTION, BH_MODE_GATE,   \
      "hides")                                                                                               \
    C("kernel.memfd", x.probes.memfd = ABSENT, ATTENTION, BH_MODE_GATE, "no sealed memfd")                   \
    C("kernel.ptrace-scope", LINE_(PTRACE_SCOPE) = "3", ATTENTION, BH_MODE_GATE, "not even root")            \
    C("kernel.landlock", x.probes.landlock.value = 2, NOTE, 0, "version 2")                                  \
    C("kernel.landlock", x.probes.landlock = ABSENT, NOTE, 0, "no Landlock")                                 \
    C("kernel.bpf-device", x.probes.bpf_device = DENIED, ATTENTION, BH_MODE_CONTAINER, "not permitted here") \
    C("kernel.bpf-device", (x.platform.cgroup.text = "v1"), NONE, 0, "v1")                                   \
    C("kernel.cgroup", x.platform.cgroup.text = "hybrid", ATTENTION, 0, "mixed")                             \
    C("kernel.cgroup", LINE_(CGROUP_CONTROLLERS) = "cpu memory pids", ATTENTION, 0, "'cpuset'")              \
    C("kernel.cgroup", x.platform.cgroup = ((struct bh_platform_text){NULL, "none"}), UNKNOWN,               \
      BH_MODE_CONTAINER, "")                                                                                 \
    C("kernel.userns", x.probes.userns = ((struct bh_probe){BH_PROBE_FAILED, ENOSPC, 0}), ATTENTION, 0,      \
      "No space")                                                                                            \
    C("kernel.userns", x.probes.userns = ABSENT, NOTE, 0, "no user namespaces")                              \
    C("kernel.secure-boot", x.platform.secure_boot.known = BH_KNOWN_NO, NOTE, 0, "off")                      \
    C("kernel.secure-boot", x.platform.secure_boot = unseen, UNKNOWN, 0, "not to be seen")                   \
    C("kernel.io-uring", LINE_(IO_URING_DISABLED) = "0", NOTE, 0, "open to every process")                   \
    C("containers.runtime", PROG(CRUN).path = NULL, NOTE, BH_MODE_CONTAINER, "neither crun nor runc")        \
    C("containers.runtime", PROG(CRUN).version = "0.17", ATTENTION, 0, "crun 0.17 cannot")                   \
    C("containers.runtime", (PROG(CRUN).path = NULL, PROG(RUNC) = old_runc), ATTENTION, 0,                   \
      "runc 1.0.0 cannot")                                                                                   \
    C("containers.engine", PROG(CONTAINERD).version = "1.6.20~ds1", ATTENTION, 0, "drops CDI")               \
    C("containers.engine", PROG(CONTAINERD).version = "1.7.24", ATTENTION, 0, "with CDI off")                \
    C("containers.engine", (PROG(CONTAINERD).version = "1.7.24", cdi_on()), OK, 0, "1.7.24 with CDI")        \
    C("containers.engine", PROG(DOCKER) = docker("27.3.1"), ATTENTION, 0, "docker 27.3.1 with CDI off")      \
    C("containers.engine", PROG(DOCKER) = docker("20.10.24"), ATTENTION, 0, "has no CDI")                    \
    C("containers.engine", (PROG(DOCKER) = docker("27.3.1"), docker_cdi_on()), OK, 0, "27.3.1 with CDI")     \
    C("containers.engine", PROG(DOCKER) = docker("28.5.0"), OK, 0, "28.5.0 with CDI")                        \
    C("containers.engine", PROG(DOCKER) = docker(NULL), UNKNOWN, 0, "version not known")                     \
    C("containers.cdi", x.node.cdi.n = 0, NOTE, 0, "no spec")                                                \
    C("containers.cdi", x.node.cdi.at[0].text = "/dev/nvidia0", ATTENTION, 0, "do not name GPU 1")           \
    C("containers.cdi", x.node.cdi.at[0].text = "/dev/nvidia0 /dev/nvidia1 /dev/nvidia2", ATTENTION, 0,      \
      "3 GPUs, 2")                                                                                           \
    C("containers.toolkit", x.platform.toolkit.text = "1.17.3", ATTENTION, 0, "1.17.3: ")                    \
    C("containers.toolkit", x.platform.toolkit = ((struct bh_platform_text){NULL, "no list"}), UNKNOWN, 0,   \
      "no list")                                                                                             \
    C("containers.toolkit-config", FILE_(TOOLKIT_CONFIG) = "#x\n", ATTENTION, 0, "NVIDIA_VISIBLE_DEVICES")   \
    C("containers.toolkit-config", FILE_(TOOLKIT_CONFIG) = "no-cgroups = true\n", ATTENTION,                 \
      BH_MODE_CONTAINER, "no")                                                                               \
    C("virtual.iommu", x.platform.iommu = no_groups, NOTE, VM_MODES, "has no IOMMU groups")                  \
    C("virtual.iommu", x.platform.iommu = unseen, UNKNOWN, VM_MODES, "not to be seen")                       \
    C("virtual.groups", x.node.groups.at[1].others = "0000:1a:00.0", ATTENTION, VM_MODES,                    \
      "group 8 with 0000:1a")                                                                                \
    C("virtual.acs", x.platform.acs = no_groups, NOTE, VM_MODES, "")                                         \
    C("virtual.acs", x.platform.acs = unseen, UNKNOWN, VM_MODES, "not to be seen")                           \
    C("virtual.vfio", x.node.vfio = false, NOTE, VM_MODES, "not loaded")                                     \
    C("virtual.unsafe", LINE_(UNSAFE_NOIOMMU) = "Y", ATTENTION, VM_MODES, "enable_unsafe_noiommu_mode is Y") \
    C("virtual.unsafe", LINE_(UNSAFE_INTERRUPTS) = "Y", ATTENTION, VM_MODES, "allow_unsafe_interrupts is Y") \
    C("virtual.kvm", x.node.kvm.exists = false, NOTE, VM_MODES, "no /dev/kvm")                               \
    C("virtual.qemu", PROG(QEMU).path = NULL, NOTE, VM_MODES, "not installed")                               \
    C("virtual.confidential", x.gpus.cc_feature = READ(0), NOTE, BH_MODE_CVM, "off")                         \
    C("virtual.confidential", x.gpus.cc_devtools = READ(1), ATTENTION, BH_MODE_CVM, "developer mode")        \
    C("virtual.confidential", LINE_(SEV_SNP) = "N", NOTE, BH_MODE_CVM, "neither SEV-SNP nor TDX")            \
    C("scheduler.present", PROG(KUBELET) = docker("1.36.4"), ATTENTION, 0, "both slurmd and a kubelet")      \
    C("scheduler.slurm", FILE_(SLURM) = "TaskPlugin=task/cgroup\n", ATTENTION, 0, "GresTypes")               \
    C("scheduler.slurm", FILE_(SLURM) = "GresTypes=gpu\nTaskPlugin=task/affinity\n", ATTENTION, 0,           \
      "TaskPlugin")                                                                                          \
    C("scheduler.slurm", FILE_(SLURM_CGROUP) = "#ConstrainDevices=yes\n", ATTENTION, 0,                      \
      "ConstrainDevices is not")                                                                             \
    C("scheduler.slurm", x.node.files[BH_FILE_SLURM_CGROUP] = nothing, ATTENTION, 0,                         \
      "cgroup.conf is missing")                                                                              \
    C("scheduler.slurm", x.node.files[BH_FILE_SLURM_GRES] = nothing, ATTENTION, 0, "no gres.conf")           \
    C("scheduler.slurm", x.node.files[BH_FILE_SLURM] = nothing, UNKNOWN, 0, "not on this node")              \
    C("scheduler.labels", FILE_(LABELS) = L("gpu.product=NVIDIA-A100-SXM4-80GB"), ATTENTION, 0,              \
      "A100-SXM4-80GB")                                                                                      \
    C("scheduler.labels", FILE_(LABELS) = L("gpu.count=8"), ATTENTION, 0, "the label says 8, the silicon 2") \
    C("scheduler.labels", FILE_(LABELS) = L("cuda.driver-version.full=570.1"), ATTENTION, 0, "says 570.1")   \
    C("scheduler.labels", FILE_(LABELS) = L("mig.strategy=none"), ATTENTION, 0, "mig.strategy")              \
    C("scheduler.labels", FILE_(LABELS) = SLICES, ATTENTION, 0,                                              \
      "mig-1g.10gb.me.count: the label says 7, the sil")                                                     \
    C("mps.programs", PROG(MPS_SERVER).path = NULL, NOTE, BH_MODE_MPS, "is not here")                        \
    C("mps.daemon", (x.node.mps_running = true, x.node.mps_folder_mode = 0755), ATTENTION, 0, "(0755)")      \
    C("mps.daemon", (x.node.mps_running = true, x.node.mps_folder_mode = 0700), OK, 0, "closed to others")   \
    C("host.memory", FILE_(MEMINFO) = "MemTotal: 16777216 kB\n", NOTE, BH_MODE_SUSPEND,                      \
      "16 GiB, less than one")                                                                               \
    C("host.memory", x.gpus.driver = "550.163.01", NOTE, BH_MODE_SUSPEND, "cannot park")                     \
    C("host.memory", FILE_(MEMINFO) = "", UNKNOWN, BH_MODE_SUSPEND, "not known")                             \
    C("host.disk", x.node.state_free_bytes = BH_MIB, ATTENTION, 0, "1 MiB free")                             \
    C("host.numa", GPU(1).numa = -1, ATTENTION, 0, "GPU 1: not known, of nodes 0-1")                         \
    C("host.numa", (GPU(1).numa = -1, LINE_(NUMA_ONLINE) = "0"), OK, 0, "there is one")

/* What could not be looked at, or makes no sense: none of it may be taken for good, nor for absent. */
#define BLIND_CASES(C)                                                                                      \
    C("silicon.memory", GPU(0).ecc_uncorrected_now = NOT_READ, UNKNOWN, 0, "GPU 0: not all error counters") \
    C("silicon.memory", GPU(1).remap_pending = NO_ANSWER, UNKNOWN, 0, "GPU 1: not all error counters")      \
    C("silicon.throttle", GPU(0).throttle = READ(1 << 2), NOTE, 0, "GPU 0 at the power cap")                \
    C("silicon.throttle", GPU(0).throttle = READ(1 | 1 << 5), ATTENTION, 0, "slowed down: too hot")         \
    C("silicon.mig", GPU(0).mig_mode = NO_ANSWER, UNKNOWN, 0, "GPU 0: the MIG mode or its slices")          \
    C("silicon.mig", (GPU(0).mig_mode = GPU(1).mig_mode = NO_ANSWER), UNKNOWN, BH_MODE_MIG, "GPUs 0, 1")    \
    C("silicon.mig", (GPU(0).mig_mode = GPU(1).mig_mode = NOT_READ), NOTE, BH_MODE_MIG, "no GPU here")      \
    C("silicon.library", NO_GPUS(BH_DENIED), BROKEN, BH_MODE_ALL, "no NVIDIA")                              \
    C("silicon.library", (NO_GPUS(BH_DENIED), x.probes.is_root = false), UNKNOWN, BH_MODE_ALL, "no NVIDIA") \
    C("silicon.library", (NO_GPUS(BH_NOT_FOUND), amd_card()), NOTE, BH_MODE_ALL, "the GPUs are AMD's")      \
    C("silicon.library", (NO_GPUS(BH_CONFLICT), amd_card()), BROKEN, BH_MODE_ALL, "no NVIDIA")              \
    C("silicon.amd", amd_card(), NOTE, 0, "1, MI300X: shown and exported; none of the promises")            \
    C("silicon.amd", x.facts.amd_err = ((struct bh_err){BH_DENIED, "no way in"}), UNKNOWN, 0, "no way in")  \
    C("driver.module", (NO_GPUS(BH_NOT_FOUND), no_driver(), amd_card()), NONE, 0, "no NVIDIA GPU")          \
    C("driver.module", (NO_GPUS(BH_NOT_FOUND), no_driver(), UNREAD(MODULE_VERSION)), UNKNOWN,               \
      BH_MODE_ALL & ~BH_MODE_VM, "not to be seen: closed")                                                  \
    C("driver.module", (NO_GPUS(BH_CONFLICT), no_driver(), x.facts.stand_in = "x"), NONE, 0, "simulated")   \
    C("driver.profiling", PARAM(0) = "", UNKNOWN, 0, "makes no sense: ''")                                  \
    C("driver.profiling", PARAM(0) = "banana", UNKNOWN, 0, "makes no sense: 'banana'")                      \
    C("driver.profiling", (no_params(), no_driver()), UNKNOWN, 0, "RmProfilingAdminOnly: not permitted")    \
    C("driver.scrub", (no_params(), no_driver()), UNKNOWN, BH_MODE_GATE | BH_MODE_MPS, "not permitted")     \
    C("driver.scrub", PARAM(2) = "RMDisableScrubOnFree=0;RMDisableScrubOnFree=1", ATTENTION,                \
      BH_MODE_GATE | BH_MODE_MPS, "off")                                                                    \
    C("driver.scrub", PARAM(2) = "A=0; RMDisableScrubOnFree = 1", ATTENTION, BH_MODE_GATE | BH_MODE_MPS,    \
      "off")                                                                                                \
    C("driver.scrub", PARAM(2) = "rmdisablescrubonfree=0x1", ATTENTION, BH_MODE_GATE | BH_MODE_MPS, "off")  \
    C("driver.scrub", PARAM(2) = "RMDisableScrubOnFree=x", UNKNOWN, BH_MODE_GATE | BH_MODE_MPS, "no sense") \
    C("driver.scrub", PARAM(2) = "XRMDisableScrubOnFree=1;RMDisableScrubOnFreeX=1", OK, 0, "clears")        \
    C("driver.hmm", UNREAD(UVM_DISABLE_HMM), UNKNOWN, 0, "closed")                                          \
    C("driver.hmm", LINE_(UVM_DISABLE_HMM) = "", UNKNOWN, 0, "empty")                                       \
    C("driver.signed", UNREAD(MODULE_TAINT), UNKNOWN, 0, "closed")                                          \
    C("devices.modes", x.node.caps.at[0].mode = 0444, NOTE, 0, "nvidia-cap147 (0444)")                      \
    C("devices.caps", x.node.mig_config.uid = 1000, ATTENTION, 0, "open to user 1000 (0400)")               \
    C("devices.caps", (x.node.mig_config.mode = 0440, x.node.mig_config.gid = 44), ATTENTION, 0,            \
      "open to group 44")                                                                                   \
    C("devices.caps", (x.node.mig_config.uid = 1000, x.platform.root = "/r"), OK, 0, "closed to others")    \
    C("fabric.links", (GPU(0).links = GPU(1).links = NO_ANSWER), UNKNOWN, BH_MODE_NVLINK, "GPUs 0, 1")      \
    C("fabric.links", GPU(1).links = NO_ANSWER, UNKNOWN, 0, "GPU 1: not known whether links")               \
    C("fabric.links", (GPU(0).links = GPU(1).links = NOT_READ), NONE, BH_MODE_NVLINK, "no NVLink")          \
    C("silicon.mig", (GPU(1).instances_seen = NO_ANSWER, GPU(1).instances.n = 0), UNKNOWN, 0, "GPU 1: ")    \
    C("fabric.state", GPU(0).fabric_error = 999, ATTENTION, 0, "GPU 0: the fabric is unhealthy")            \
    C("fabric.domains", GPU(1).links = NO_ANSWER, UNKNOWN, 0, "GPU 1")                                      \
    C("fabric.state", (GPU(0).fabric_state = GPU(1).fabric_state = NO_ANSWER), UNKNOWN, BH_MODE_NVLINK,     \
      "GPUs 0, 1: the fabric's state")                                                                      \
    C("fabric.state", (GPU(0).fabric_state = GPU(1).fabric_state = NOT_READ), NONE, 0, "no GPU here joins")

#define MORE_BLIND_CASES(C)                                                                                 \
    C("kernel.landlock", x.probes.landlock = DENIED, NOTE, 0, "not permitted here")                         \
    C("kernel.userns", x.probes.userns = DENIED, NOTE, 0, "not permitted here")                             \
    C("kernel.ptrace-scope", UNREAD(PTRACE_SCOPE), UNKNOWN, BH_MODE_GATE, "closed")                         \
    C("kernel.ptrace-scope", LINE_(PTRACE_SCOPE) = "", UNKNOWN, BH_MODE_GATE, "makes no sense: ''")         \
    C("kernel.ptrace-scope", LINE_(PTRACE_SCOPE) = "4", UNKNOWN, BH_MODE_GATE, "makes no sense: '4'")       \
    C("kernel.ptrace-scope", ABSENT_LINE(PTRACE_SCOPE), NONE, 0, "Yama is not part")                        \
    C("kernel.io-uring", LINE_(IO_URING_DISABLED) = "on", UNKNOWN, 0, "makes no sense: 'on'")               \
    C("kernel.io-uring", LINE_(IO_URING_DISABLED) = "", UNKNOWN, 0, "makes no sense")                       \
    C("kernel.io-uring", UNREAD(IO_URING_DISABLED), UNKNOWN, 0, "closed")                                   \
    C("kernel.io-uring", ABSENT_LINE(IO_URING_DISABLED), NOTE, 0, "cannot be turned off")                   \
    C("kernel.cgroup", UNREAD(CGROUP_CONTROLLERS), UNKNOWN, BH_MODE_CONTAINER, "not to be seen: closed")    \
    C("containers.cdi", x.node.cdi.at[0] = closed_file, UNKNOWN, 0, "closed")                               \
    C("virtual.iommu", GPU(1).pci = NULL, UNKNOWN, VM_MODES, "GPU 1: its PCI address is not known")         \
    C("virtual.acs", (GPU(1).alive = false, GPU(1).pci = NULL), UNKNOWN, VM_MODES, "GPU 1: its PCI")        \
    C("virtual.groups", x.node.groups.at[1].why = "closed", UNKNOWN, VM_MODES, "group 8 with GPU 0000:19")  \
    C("virtual.groups", x.node.groups.at[1].id = NULL, NOTE, VM_MODES, "GPU 0000:19:00.0 is in no group")   \
    C("virtual.groups", GPU(1).pci = NULL, UNKNOWN, VM_MODES, "GPU 1: its PCI")                             \
    C("virtual.unsafe", UNREAD(UNSAFE_NOIOMMU), UNKNOWN, VM_MODES, "closed")                                \
    C("virtual.unsafe", LINE_(UNSAFE_NOIOMMU) = "", UNKNOWN, VM_MODES, "enable_unsafe_noiommu_mode is em")  \
    C("virtual.confidential", x.gpus.cc_feature = NO_ANSWER, UNKNOWN, BH_MODE_CVM, "error 999")             \
    C("virtual.confidential", x.gpus.cc_environment = NO_ANSWER, UNKNOWN, BH_MODE_CVM, "error 999")         \
    C("virtual.confidential", x.gpus.cc_feature = NOT_READ, NOTE, BH_MODE_CVM, "off on the GPUs: not supp") \
    C("virtual.confidential", UNREAD(SEV_SNP), UNKNOWN, BH_MODE_CVM, "is not known")                        \
    C("scheduler.labels", FILE_(LABELS) = L("mig.strategy=mixed"), ATTENTION, 0,                            \
      "mig-3g.40gb.count: the label says nothing, the silicon 1")                                           \
    C("scheduler.labels", mixed_node("2"), ATTENTION, 0, "gpu.count: the label says 2, the silicon 1")      \
    C("scheduler.labels", mixed_node("1"), OK, 0, "agree")                                                  \
    C("scheduler.labels", unknown_cards("NVIDIA-X900"), OK, 0, "agree")                                     \
    C("scheduler.labels", unknown_cards("NVIDIA-Y100"), ATTENTION, 0,                                       \
      "NVIDIA-Y100, the silicon NVIDIA X900")                                                               \
    C("mps.daemon", (x.node.mps_hidden = true, x.node.mps_folder_mode = 0700), UNKNOWN, 0, "(0700)")        \
    C("host.numa", (GPU(1).numa = -1, LINE_(NUMA_ONLINE) = ""), UNKNOWN, 0, "nor how many")

#define L(label) "nvidia.com/" label "\n"
#define SLICES   L("mig.strategy=mixed") L("mig-1g.10gb.me.count=7")
enum {
    NODE_MODES = BH_MODE_WHOLE | BH_MODE_GATE | BH_MODE_CONTAINER,
    VM_MODES = BH_MODE_VM | BH_MODE_CVM,
};
static const struct bh_platform_fact no_groups = {BH_KNOWN_NO, "the kernel has no IOMMU groups"};
static const struct bh_platform_fact unseen = {BH_KNOWN_NOT, "not to be seen"};
static const struct bh_node_program old_runc = {"/usr/bin/runc", "1.0.0"};
static const struct bh_node_file nothing;
static const struct bh_probe busy = {BH_PROBE_FAILED, EBUSY, 0};

static const struct bh_node_file closed_file = {.path = "/etc/cdi/x.yaml", .why = "closed"};

/* Beside NVIDIA's, or alone. */
static void amd_card(void)
{
    static struct bh_gpu_device card = {.vendor = BH_GPU_AMD, .alive = true, .name = "MI300X"};
    static struct bh_gpu_snapshot amd;
    amd.devices.at = &card;
    amd.devices.n = 1;
    x.facts.amd = &amd;
}

/* GPU 1 is another model than the label names; `count`: what the label counts. */
static void mixed_node(const char *count)
{
    static char labels[256];
    GPU(1).model = bh_catalog_find("A30");
    GPU(1).name = "NVIDIA A30";
    (void)snprintf(labels, sizeof(labels),
                   L("gpu.product=NVIDIA-H100-80GB-HBM3") L("gpu.count=%s") L("mig.strategy=mixed")
                       L("mig-3g.40gb.count=1"),
                   count);
    FILE_(LABELS) = labels;
}

static void unknown_cards(const char *product)
{
    static char labels[256];
    for (size_t i = 0; i < 2; i++) {
        GPU(i).model = NULL;
        GPU(i).name = "NVIDIA X900";
    }
    (void)snprintf(labels, sizeof(labels),
                   L("gpu.product=%s") L("gpu.count=2") L("mig.strategy=mixed") L("mig-3g.40gb.count=1"),
                   product);
    FILE_(LABELS) = labels;
}

static void no_mig(void)
{
    for (size_t i = 0; i < 2; i++) {
        GPU(i).mig_mode = GPU(i).mig_pending = NOT_READ;
        GPU(i).model = bh_catalog_find("L40S");
    }
}

static void no_driver(void)
{
    x.platform.driver = (struct bh_platform_text){NULL, "no such file"};
    ABSENT_LINE(MODULE_VERSION);
    x.node.files[BH_FILE_DRIVER_VERSION] = (struct bh_node_file){0};
}

static void no_params(void)
{
    x.platform.params.n = 0;
    x.platform.params_why = "not permitted";
}

static void no_fabric(void)
{
    PROG(FABRIC_MANAGER).path = NULL;
    GPU(0).fabric_state = GPU(1).fabric_state = NOT_READ;
}

static void open_channel(void)
{
    x.node.imex_channel0.exists = true;
    x.node.imex_channel0.mode = 0666;
}

static void cdi_on(void)
{
    x.node.files[BH_FILE_CONTAINERD_CONFIG] =
        (struct bh_node_file){.path = "/c", .text = "  enable_cdi = true\n"};
}

static void docker_cdi_on(void)
{
    x.node.files[BH_FILE_DOCKER_CONFIG] =
        (struct bh_node_file){.path = "/d", .text = "{\"features\": {\"cdi\": true}}"};
}

static struct bh_node_program docker(const char *version)
{
    return (struct bh_node_program){"/usr/bin/x", version};
}

struct outcome {
    const char *check;
    uint8_t state;
    uint32_t takes;
    const char *part;
};

static const struct outcome outcomes[] = {
#define C(check, spoil, state, takes, part) {check, BH_CHECK_##state, takes, part},
    CASES(C) MORE_CASES(C) BLIND_CASES(C) MORE_BLIND_CASES(C)
#undef C
};

/* Spoils what case i spoils. The cases are one list, so the places agree. */
static void spoil(size_t i)
{
    size_t at = 0;
#define C(check, code, state, takes, part) \
    if (at++ == i) {                       \
        code;                              \
        return;                            \
    }
    CASES(C) MORE_CASES(C) BLIND_CASES(C) MORE_BLIND_CASES(C)
#undef C
}

static const struct bh_check_result *result_of(const char *id)
{
    for (size_t i = 0; i < d.results.n; i++)
        if (bh_str_eq(d.results.at[i].check->id, id))
            return &d.results.at[i];
    return NULL;
}

static void start(void)
{
    bh_doctor_fini(&d);
    bh_doctor_fixture_fini(&x);
    d = (struct bh_doctor){0};
    bh_doctor_fixture_init(&x);
}

static void finish(void)
{
    bh_doctor_fini(&d);
    bh_doctor_fixture_fini(&x);
    d = (struct bh_doctor){0};
    x = (fixture){0};
}

TEST(a_good_node_passes_every_check)
{
    struct bh_promise p[BH_N_MODES];
    start();
    bh_doctor_judge(&d, &x.facts);
    for (size_t i = 0; i < d.results.n; i++) {
        bool is_amd = bh_str_eq(d.results.at[i].check->id, "silicon.amd"); /* there is none */
        if (d.results.at[i].state != BH_CHECK_OK && !is_amd)
            printf("# %s: %s\n", d.results.at[i].check->id, d.results.at[i].seen);
        CHECK_EQ(d.results.at[i].state, is_amd ? BH_CHECK_NONE : BH_CHECK_OK);
        CHECK(d.results.at[i].seen && *d.results.at[i].seen);
    }
    CHECK_EQ(bh_doctor_exit(&d), 0);
    bh_doctor_promises(&d, p);
    for (size_t m = 0; m < BH_N_MODES; m++)
        CHECK(p[m].can == BH_CAN && !p[m].by);
    finish();
}

TEST(each_fault_is_seen_for_what_it_is)
{
    for (size_t i = 0; i < BH_COUNT_OF(outcomes); i++) {
        const struct outcome *o = &outcomes[i];
        start();
        spoil(i);
        bh_doctor_judge(&d, &x.facts);
        const struct bh_check_result *r = result_of(o->check);
        CHECK(r != NULL);
        if (r->state != o->state || r->takes != o->takes || !strstr(r->seen, o->part))
            printf("# case %zu, %s: %s %u %s\n", i, o->check, bh_check_state_str(r->state), r->takes,
                   r->seen);
        CHECK_EQ(r->state, o->state);
        CHECK_EQ(r->takes, o->takes);
        CHECK(strstr(r->seen, o->part) != NULL);
        bool bad = o->state == BH_CHECK_ATTENTION || o->state == BH_CHECK_BROKEN;
        CHECK(!bad || bh_doctor_exit(&d) == BH_EXIT_FOUND);
    }
    finish();
}

TEST(what_a_fault_takes_away_cannot_be_promised)
{
    for (size_t i = 0; i < BH_COUNT_OF(outcomes); i++) {
        struct bh_promise p[BH_N_MODES];
        start();
        spoil(i);
        bh_doctor_judge(&d, &x.facts);
        bh_doctor_promises(&d, p);
        for (size_t m = 0; m < BH_N_MODES; m++)
            if (outcomes[i].takes >> m & 1) {
                CHECK(p[m].can != BH_CAN && p[m].by);
                CHECK(outcomes[i].state == BH_CHECK_UNKNOWN || p[m].can == BH_CANNOT);
            }
    }
    finish();
}

TEST(every_check_can_fail_and_names_rules_that_exist)
{
    size_t n = 0;
    for (const struct bh_doctor_layer *l = bh_doctor_layers; l->name; l++)
        for (const struct bh_check *c = l->checks; c->id; c++, n++) {
            bool fails = false;
            for (size_t i = 0; i < BH_COUNT_OF(outcomes); i++)
                fails =
                    fails || (bh_str_eq(outcomes[i].check, c->id) && outcomes[i].state != BH_CHECK_OK &&
                              outcomes[i].state != BH_CHECK_NONE && outcomes[i].state != BH_CHECK_UNKNOWN);
            if (!fails)
                printf("# %s never fails\n", c->id);
            CHECK(fails);
            CHECK(c->why && *c->why && c->mend && *c->mend && c->judge);
            for (size_t k = 0; k < BH_CHECK_RULES_MAX; k++)
                CHECK(!c->rules[k] || bh_rule_find(c->rules[k]));
        }
    CHECK(n > 50);
}

TEST(a_reason_to_say_no_outweighs_one_not_to_know)
{
    struct bh_promise p[BH_N_MODES];
    start();
    x.platform.iommu = unseen;
    bh_doctor_judge(&d, &x.facts);
    bh_doctor_promises(&d, p);
    CHECK_EQ(p[7].can, BH_CAN_UNKNOWN);
    CHECK_STR(p[7].by->check->id, "virtual.iommu");
    CHECK_EQ(bh_doctor_exit(&d), 0); /* what is not known is shown, and is no fault */
    start();
    x.platform.iommu = unseen;
    PROG(QEMU).path = NULL;
    bh_doctor_judge(&d, &x.facts);
    bh_doctor_promises(&d, p);
    CHECK_EQ(p[7].can, BH_CANNOT);
    CHECK_STR(p[7].by->because, "no QEMU");
    finish();
}

TEST(a_library_that_fails_is_mended_by_how_it_fails)
{
    static const struct {
        enum bh_code code;
        const char *mend, *because;
    } ways[] = {{BH_NOT_FOUND, NULL, "no NVIDIA driver"},
                {BH_DENIED, "ask again as root", "may not be asked"},
                {BH_BUSY, "look in the kernel log", "in time"},
                {BH_CONFLICT, "reload the driver", "differ"},
                {BH_SYSTEM, "look in the kernel log", "does not answer"}};
    for (size_t i = 0; i < BH_COUNT_OF(ways); i++) {
        start();
        NO_GPUS(ways[i].code);
        bh_doctor_judge(&d, &x.facts);
        const struct bh_check_result *r = result_of("silicon.library");
        CHECK(r->because && strstr(r->because, ways[i].because));
        CHECK(ways[i].mend ? r->mend && bh_str_starts(r->mend, ways[i].mend) : !r->mend);
    }
    finish();
}

TEST(on_amd_alone_nothing_is_promised_and_nothing_is_broken)
{
    struct bh_promise p[BH_N_MODES];
    start();
    NO_GPUS(BH_NOT_FOUND);
    no_driver();
    no_params();
    amd_card();
    bh_doctor_judge(&d, &x.facts);
    CHECK_EQ(bh_doctor_count(&d, BH_CHECK_BROKEN), 0);
    bh_doctor_promises(&d, p);
    for (size_t m = 0; m < BH_N_MODES; m++) {
        CHECK_EQ(p[m].can, BH_CANNOT);
        CHECK_STR(p[m].by->because, "only AMD GPUs");
    }
    finish();
}

TEST(another_machines_kernel_is_not_asked)
{
    struct bh_promise p[BH_N_MODES];
    start();
    x.probes = (struct bh_probes){.skipped = "not asked"};
    bh_doctor_judge(&d, &x.facts);
    CHECK_EQ(result_of("kernel.seccomp-notify")->state, BH_CHECK_UNKNOWN);
    CHECK_STR(result_of("host.disk")->seen, "not asked");
    CHECK_EQ(result_of("kernel.cgroup")->state, BH_CHECK_OK); /* that one is read from files */
    bh_doctor_promises(&d, p);
    CHECK_EQ(p[2].can, BH_CAN_UNKNOWN);
    CHECK_EQ(p[0].can, BH_CAN);
    finish();
}

TEST(without_a_driver_nothing_can_be_kept)
{
    struct bh_promise p[BH_N_MODES];
    start();
    NO_GPUS(BH_NOT_FOUND);
    no_driver();
    no_params();
    bh_doctor_judge(&d, &x.facts);
    CHECK_EQ(bh_doctor_exit(&d), BH_EXIT_FOUND);
    CHECK_EQ(result_of("silicon.ecc")->state, BH_CHECK_NONE);
    bh_doctor_promises(&d, p);
    for (size_t m = 0; m < BH_N_MODES; m++) {
        CHECK_EQ(p[m].can, BH_CANNOT);
        CHECK_STR(p[m].by->because, "no NVIDIA driver");
    }
    finish();
}

TEST_MAIN
