/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/nvml_fixture.h"

static struct bh_nvml_fixture f;

TEST(libraries_that_cannot_be_used_give_one_sentence)
{
    static const struct {
        const char *scene;
        int rc;
        const char *words;
    } table[] = {
        {"missing", BH_NOT_FOUND, "no NVIDIA driver library on this machine: looked for "},
        {"mismatch", BH_CONFLICT, "are of different versions; reload the driver or reboot"},
        {"unloaded", BH_NOT_FOUND,
         "simulated: the NVIDIA kernel driver is not loaded; load it with: modprobe nvidia"},
        {"uninit", BH_SYSTEM, "does not start: error 1"},
    };
    for (size_t i = 0; i < BH_COUNT_OF(table); i++) {
        bh_nvml_fixture_take(&f, table[i].scene);
        CHECK_EQ(f.rc, table[i].rc);
        CHECK(strstr(f.err.msg, table[i].words) != NULL);
        CHECK(!strchr(f.err.msg, '\n') && f.s.devices.n == 0);
        /* what no vendor's library says is called so even where it says nothing else */
        bool simulated = i != 0;
        CHECK_EQ(f.s.simulated, simulated);
        CHECK_EQ(strncmp(f.err.msg, BH_GPU_SIMULATED, strlen(BH_GPU_SIMULATED)) == 0, simulated);
        CHECK_EQ(bh_gpu_read(&bh_gpu_nvml, &f.s, &f.err), table[i].rc);
        CHECK_EQ(f.s.simulated, simulated);
        CHECK(strstr(f.err.msg, table[i].words) != NULL);
    }
}

/* A library that is not there, and one that is and is of no use, are mended in different ways. */
TEST(what_stands_in_the_librarys_place)
{
    char root[BH_SCRATCH_PATH], path[BH_SYSPATH_MAX];
    static const struct {
        const char *name, *text;
        int rc;
        const char *words;
    } table[] = {
        {"none.so", NULL, BH_NOT_FOUND, "no NVIDIA driver library on this machine: looked for "},
        {"", NULL, BH_SYSTEM, "is there and cannot be loaded: it is a folder; install the driver again"},
        {"text.so", "INPUT", BH_SYSTEM, "text.so is there and cannot be loaded: "},
        {"short.so", "\177ELF", BH_SYSTEM, "short.so is there and cannot be loaded: "},
        {"pipe.so", NULL, BH_SYSTEM, "is there and cannot be loaded: it is no file"},
    };
    CHECK(bh_scratch_root(root, sizeof(root), "load"));
    (void)snprintf(path, sizeof(path), "%s/pipe.so", root);
    CHECK_EQ(mkfifo(path, 0600), 0);
    for (size_t i = 0; i < BH_COUNT_OF(table); i++) {
        (void)snprintf(path, sizeof(path), "/%s", table[i].name);
        if (table[i].text)
            bh_nvml_fixture_put(path, table[i].text);
        (void)snprintf(path, sizeof(path), "%s/%s", root, table[i].name);
        CHECK_EQ(setenv("BULKHEAD_NVML", path, 1), 0);
        CHECK_EQ(bh_gpu_read_here(&bh_gpu_nvml, &f.s, &f.err), table[i].rc);
        CHECK(strstr(f.err.msg, table[i].words) != NULL && !f.s.simulated);
    }
    /* on a machine that is marked as simulated, or under a simulated node, that is said */
    bh_nvml_fixture_put("/.bulkhead-simulated", "A simulated machine.\n");
    CHECK_EQ(bh_gpu_read_here(&bh_gpu_nvml, &f.s, &f.err), BH_SYSTEM);
    CHECK(f.s.simulated && strncmp(f.err.msg, "simulated: the NVIDIA", 21) == 0);
    CHECK(bh_scratch_remove(root) && unsetenv("BULKHEAD_SYSROOT") == 0);
    CHECK_EQ(setenv("BULKHEAD_SIM", "here", 1), 0);
    CHECK_EQ(bh_gpu_read_here(&bh_gpu_nvml, &f.s, &f.err), BH_NOT_FOUND);
    CHECK(f.s.simulated && strncmp(f.err.msg, "simulated: no NVIDIA", 20) == 0);
    CHECK_EQ(unsetenv("BULKHEAD_SIM"), 0);
}

TEST(a_library_that_is_something_else)
{
    CHECK_EQ(setenv("BULKHEAD_NVML", "libc.so.6", 1), 0);
    CHECK_EQ(bh_gpu_read(&bh_gpu_nvml, &f.s, &f.err), BH_NOT_FOUND);
    CHECK_STR(f.err.msg, "libc.so.6 is no NVIDIA driver library that can be used: it cannot list GPUs");
}

TEST(a_whole_machine)
{
    bh_nvml_fixture_take(&f, "h100x8");
    CHECK_EQ(f.rc, BH_OK);
    CHECK(f.s.simulated && strstr(f.s.library, "h100x8.so"));
    CHECK_STR(f.s.driver, "580.159.03");
    CHECK_STR(f.s.nvml, "13.580.159.03");
    CHECK_STR(f.s.cuda, "13.0");
    CHECK(f.s.cc_environment.v == 2 && f.s.cc_feature.v == 0 && !f.s.cc_devtools.why);
    CHECK_EQ(f.s.devices.n, 8);
    CHECK_EQ(f.s.notes.n, 0);
}

TEST(no_gpu_and_many)
{
    bh_nvml_fixture_take(&f, "none");
    CHECK_EQ(f.rc, BH_OK);
    CHECK(f.s.devices.n == 0 && f.s.paths.n == 0 && f.s.driver);
    bh_nvml_fixture_take(&f, "many");
    CHECK_EQ(f.s.devices.n, 64);
    CHECK_EQ(f.s.paths.n, 64 * 63 / 2);
    CHECK_STR(f.s.devices.at[63].pci, "0001:37:00.0");
}

TEST(a_dead_gpu_keeps_its_line_and_the_others_are_read)
{
    bh_nvml_fixture_take(&f, "lost");
    CHECK_EQ(f.rc, BH_OK);
    CHECK_EQ(f.s.devices.n, 8);
    for (size_t i = 0; i < 8; i++) {
        const struct bh_gpu_device *d = &f.s.devices.at[i];
        bool dead = i == 5 || i == 6;
        CHECK_EQ(d->alive, !dead);
        CHECK_EQ(d->index, i);
        CHECK(dead == (d->total_bytes.why != NULL));
        CHECK(dead == (d->trouble != NULL));
    }
    CHECK_STR(f.s.devices.at[5].trouble,
              "lost: it fell off the bus; drain the node, then reset the GPU or reboot");
    CHECK_STR(f.s.devices.at[6].processes_seen.why, "the GPU is lost");
    CHECK_EQ(f.s.paths.n, 15);
}

/* It may fall off between two calls. */
TEST(a_gpu_that_any_call_finds_lost_is_lost)
{
    CHECK_EQ(setenv("STANDIN_FAIL", "power_of_1:15", 1), 0);
    bh_nvml_fixture_take(&f, "h200");
    CHECK(f.s.devices.at[0].alive);
    bh_nvml_fixture_take(&f, "a100mig");
    CHECK_EQ(unsetenv("STANDIN_FAIL"), 0);
    const struct bh_gpu_device *d = &f.s.devices.at[1];
    CHECK(f.s.devices.at[0].alive && !d->alive && d->up.n == 0 && !d->domain);
    CHECK_STR(d->trouble, "lost: it fell off the bus; drain the node, then reset the GPU or reboot");
    CHECK_STR(d->total_bytes.why, "the GPU is lost");
    CHECK_STR(d->pci, "0000:19:00.0");
    CHECK_EQ(f.s.paths.n, 0);
}

TEST(a_gpu_that_may_not_be_opened)
{
    bh_nvml_fixture_take(&f, "denied");
    CHECK_EQ(f.s.devices.n, 2);
    CHECK(f.s.devices.at[0].alive && !f.s.devices.at[1].alive);
    CHECK_STR(f.s.devices.at[1].trouble,
              "no permission to open it; run as a user who may open its /dev/nvidia node");
}

TEST(counts_that_lie)
{
    bh_nvml_fixture_take(&f, "liar");
    CHECK_EQ(f.s.devices.n, 2);
    CHECK_STR(f.s.notes.at[0], "the driver counts 5 GPUs and knows 2");
    bh_nvml_fixture_take(&f, "odd");
    CHECK_EQ(f.s.devices.n, 2);
    CHECK_STR(f.s.notes.at[0],
              "the driver counts 4000000000 GPUs, which cannot be; the first 256 are asked for");
}

TEST(a_library_without_most_calls)
{
    bh_nvml_fixture_take(&f, "bare");
    CHECK_EQ(f.rc, BH_OK);
    CHECK_EQ(f.s.devices.n, 8);
    const struct bh_gpu_device *d = &f.s.devices.at[0];
    CHECK_STR(d->name, "NVIDIA H100 80GB HBM3");
    CHECK(d->model && strcmp(d->model->name, "H100-80GB-SXM") == 0);
    CHECK(d->alive && !d->uuid && !d->pci && d->minor == -1 && d->numa == -1 && !f.s.driver && !d->trouble);
    CHECK_STR(d->total_bytes.why, "not supported by this driver");
    CHECK_STR(d->links.why, "not supported by this driver");
    CHECK_STR(d->processes_seen.why, "not supported by this driver");
    CHECK_STR(f.s.cc_feature.why, "not supported by this driver");
}

TEST(a_library_with_other_structs_is_not_believed)
{
    bh_nvml_fixture_take(&f, "longsize");
    CHECK_EQ(f.rc, BH_CONFLICT);
    CHECK(strstr(f.err.msg,
                 "longsize.so has another interface than it should: nvmlDeviceGetPciInfo_v3 writes more "
                 "than 68 bytes; install the library of the loaded driver"));
    CHECK_EQ(f.s.devices.n, 0);
    bh_nvml_fixture_take(&f, "shortsize");
    CHECK_EQ(f.rc, BH_CONFLICT);
    CHECK(strstr(f.err.msg, "nvmlDeviceGetPciInfo_v3 writes less than 68 bytes"));
    /* the call that was made is named, not the newest of its kind */
    CHECK_EQ(setenv("STANDIN_FAIL", "long:1", 1), 0);
    bh_nvml_fixture_take(&f, "old");
    CHECK_EQ(unsetenv("STANDIN_FAIL"), 0);
    CHECK_EQ(f.rc, BH_CONFLICT);
    CHECK(strstr(f.err.msg, "nvmlDeviceGetPciInfo_v2 writes more than 68 bytes"));
}

TEST(memory_goes_back)
{
    bh_gpu_snapshot_fini(&f.s);
    CHECK(!f.s.devices.at && !f.s.arena.head);
}

TEST_MAIN
