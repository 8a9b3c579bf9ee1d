/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/gpus_json.h"

#include "cli/gpus_fixture.h"

TEST(all_that_is_known_and_why_the_rest_is_not)
{
    struct bh_gpu_snapshot s;
    struct bh_buf b;
    bh_gpus_fixture_init(&s);
    bh_gpus_fixture_amd(&s);
    s.devices.at[0].fabric_health = 0x1aa;
    s.devices.at[2].isolation = (struct bh_reading){BH_ISOLATION_UNWIPED, NULL};
    s.devices.at[2].instances_seen = (struct bh_reading){0, "amdgpu does not say"};
    bh_buf_init(&b, 1u << 20);
    bh_gpus_json(&b, &s);
    static const char *const parts[] = {
        "{\n  \"version\": 1,\n  \"simulated\": true,\n  \"library\": \"stand\\u001b[in.so\",\n  \"driver\": \"580.159.03\",",
        "\"confidential\": {\n    \"environment\": null,",
        "\"unknown\": {\n      \"environment\": \"not supported by this GPU\",",
        "\"model\": \"H200-141GB\",",
        "\"numa\": 1,\n      \"minor\": 0,\n      \"moduleId\": null,",
        "\"migEnabled\": true,",
        "\"utilPercent\": null,",
        "\"utilPercent\": \"not supported by this GPU\"",
        "\"gpuInstance\": 9,\n          \"computeInstance\": null,",
        "\"memoryBytes\": 2362441728, \"smPercent\": 35, \"memoryPercent\": 12}",
        "\"smPercent\": null, \"memoryPercent\": null, \"unknown\": {\"smPercent\": \"not supported by this GPU\"",
        "\"index\": 2,\n      \"vendor\": \"amd\",",
        "\"computePartition\": \"SPX\",\n      \"computePartitions\": \"SPX, CPX\",\n      \"memoryPartition\": \"NPS1\",",
        "\"vendor\": \"nvidia\",",
        "\"amdgpu\": \"6.10.5\",",
        "{\"pid\": 42, \"kind\": \"compute\", \"name\": \"python3\", \"user\": \"ada\", \"gpuInstance\": 1,",
        "{\"link\": 0, \"remote\": \"switch\", \"remotePci\": \"0000:05:00.0\"}",
        "\"trouble\": \"lost: it fell off the bus\",",
        "\"throttle\": \"\",",
        "\"throttle\": null,",
        "\"fabricHealth\": 426,",
        "\"fabricHealth\": null,\n      \"computePartition\": \"SPX\",",
        "\"isolationEnforced\": true,\n      \"isolationWipesMemory\": false,\n      \"instanceCount\": null,",
        "\"notes\": [\n    \"one thing is odd\"\n  ]\n}\n",
    };
    const char *text = bh_buf_text(&b);
    for (size_t i = 0; i < BH_COUNT_OF(parts); i++) {
        if (!strstr(text, parts[i]))
            printf("# lacks %s\n%s\n", parts[i], text);
        CHECK(strstr(text, parts[i]) != NULL);
    }
    bh_buf_fini(&b);
    bh_gpu_snapshot_fini(&s);
}

TEST_MAIN
