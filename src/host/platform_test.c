/* SPDX-License-Identifier: Apache-2.0 */
#include "host/platform.h"

#include "base/scratch.h"
#include "base/sysfile.h"
#include "base/test.h"

#include <unistd.h>

#define EFI "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#define BUS "/sys/devices/pci0000:17/0000:17:01.0"
static const char *const gpu[] = {"0000:18:00.0"};
static char root[BH_SCRATCH_PATH];
static struct bh_platform p;

static void put(const char *path, const char *bytes, size_t n)
{
    CHECK(bh_scratch_put_bytes(root, path, bytes, n));
}

static void put_text(const char *path, const char *text)
{
    put(path, text, strlen(text));
}

static bool put_link(const char *path, const char *to)
{
    char at[BH_SYSPATH_MAX];
    return bh_scratch_path(at, sizeof(at), root, path) && symlink(to, at) == 0;
}

static void put_port(unsigned control)
{
    static char c[4096];
    c[6] = 0x10;
    c[0x34] = 0x40;
    c[0x40] = 0x10;
    c[0x42] = 0x42;
    c[0x100] = 0x0d;
    c[0x106] = (char)control;
    put(BUS "/config", c, sizeof(c));
}

static void read_again(void)
{
    bh_platform_fini(&p);
    bh_platform_read(&p, gpu, 1);
}

TEST(a_machine_without_anything_is_unknown)
{
    CHECK(bh_scratch_root(root, sizeof(root), "platform"));
    bh_platform_read(&p, gpu, 1);
    CHECK_STR(p.root, root);
    const struct bh_platform_text *const texts[] = {&p.hostname, &p.kernel,   &p.driver,
                                                    &p.toolkit,  &p.lockdown, &p.cgroup};
    for (size_t i = 0; i < BH_COUNT_OF(texts); i++)
        CHECK(!texts[i]->text && texts[i]->why && *texts[i]->why);
    const struct bh_platform_fact *const facts[] = {&p.iommu, &p.acs, &p.secure_boot};
    for (size_t i = 0; i < BH_COUNT_OF(facts); i++)
        CHECK(facts[i]->known == BH_KNOWN_NOT && facts[i]->why);
    CHECK(p.params.n == 0 && p.params_why);
    CHECK_STR(p.toolkit.why, "no nvidia-ctk on this machine");
}

TEST(a_machine_in_full)
{
    put_text("/proc/sys/kernel/hostname", "gpu-01\n");
    put_text("/proc/sys/kernel/osrelease", "6.8.0-60-generic\n");
    put_text("/proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.03  x\n");
    put_text("/proc/driver/nvidia/params", "RmProfilingAdminOnly: 1\nRegistryDwords: \"\"\n");
    put_text("/var/lib/dpkg/status",
             "Package: nvidia-container-toolkit\nStatus: install ok installed\nVersion: 1.17.8-1\n");
    put_text("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
    put_text("/sys/fs/cgroup/cgroup.controllers", "cpu\n");
    put(EFI, "\6\0\0\0\1", 5);
    put_text("/sys/kernel/iommu_groups/7/type", "DMA\n");
    put_text(BUS "/0000:18:00.0/iommu_group", "");
    CHECK(put_link("/sys/bus/pci/devices/0000:18:00.0",
                   "../../../devices/pci0000:17/0000:17:01.0/0000:18:00.0"));
    CHECK(put_link("/sys/bus/pci/devices/0000:17:01.0", "../../../devices/pci0000:17/0000:17:01.0"));
    put_port(0x1d);
    read_again();
    CHECK_STR(p.hostname.text, "gpu-01");
    CHECK_STR(p.kernel.text, "6.8.0-60-generic");
    CHECK_STR(p.driver.text, "580.159.03");
    CHECK_STR(p.toolkit.text, "1.17.8");
    CHECK_STR(p.lockdown.text, "integrity");
    CHECK_STR(p.cgroup.text, "v2");
    CHECK(p.params.n == 2 && !p.params_why);
    CHECK_STR(p.params.at[0].key, "RmProfilingAdminOnly");
    CHECK_STR(p.params.at[0].value, "1");
    CHECK_EQ(p.secure_boot.known, BH_KNOWN_YES);
    CHECK_EQ(p.iommu.known, BH_KNOWN_YES);
    CHECK_EQ(p.acs.known, BH_KNOWN_YES);
}

TEST(a_gpu_nobody_looked_at_is_not_in_order)
{
    const char *const one_unknown[] = {"0000:18:00.0", NULL}, *const other[] = {NULL, "0000:19:00.0"};
    bh_platform_fini(&p);
    bh_platform_read(&p, NULL, 0);
    CHECK(p.iommu.known == BH_KNOWN_NOT && p.acs.known == BH_KNOWN_NOT);
    CHECK_STR(p.iommu.why, "no GPU whose group could be looked at");
    bh_platform_fini(&p);
    bh_platform_read(&p, one_unknown, 2);
    CHECK(p.iommu.known == BH_KNOWN_NOT && p.acs.known == BH_KNOWN_NOT);
    CHECK_STR(p.iommu.why, "the PCI address of a GPU is not known");
    CHECK_STR(p.acs.why, "the PCI address of a GPU is not known");
    bh_platform_fini(&p);
    bh_platform_read(&p, other, 2); /* a no is a no, whatever else is unknown */
    CHECK_EQ(p.iommu.known, BH_KNOWN_NO);
    CHECK_STR(p.iommu.why, "GPU 0000:19:00.0 is in no IOMMU group");
}

TEST(a_no_says_what_made_it)
{
    char at[BH_SYSPATH_MAX];
    put_port(0);
    put(EFI, "\6\0\0\0\0", 5);
    put_text("/sys/module/nvidia/version", "580.1\n");
    CHECK(bh_syspath(at, BUS "/0000:18:00.0/iommu_group") && unlink(at) == 0);
    read_again();
    CHECK_EQ(p.acs.known, BH_KNOWN_NO);
    CHECK_STR(p.acs.why, "port 0000:17:01.0 lets peer traffic pass the IOMMU by");
    CHECK_EQ(p.iommu.known, BH_KNOWN_NO);
    CHECK_STR(p.iommu.why, "GPU 0000:18:00.0 is in no IOMMU group");
    CHECK_EQ(p.secure_boot.known, BH_KNOWN_NO);
    CHECK_STR(p.driver.text, "580.1"); /* the module itself comes first */
}

TEST(what_only_root_may_read_is_unknown)
{
    char half[64] = {0};
    half[6] = 0x10;
    put(BUS "/config", half, sizeof(half));
    put(EFI, "\6\0\0", 3);
    read_again();
    CHECK_EQ(p.acs.known, BH_KNOWN_NOT);
    CHECK_STR(p.acs.why, "only root may read the configuration of port 0000:17:01.0");
    CHECK_EQ(p.secure_boot.known, BH_KNOWN_NOT);
    CHECK_STR(p.secure_boot.why, "the firmware's SecureBoot variable makes no sense");
}

TEST(all_goes_back)
{
    bh_platform_fini(&p);
    CHECK(bh_scratch_remove(root));
}

TEST_MAIN
