# SPDX-License-Identifier: Apache-2.0
"""The stand-in library exports names of the vendor's interface, all that the product asks for, and nothing else.

Usage: sim_test.py LIBRARY SOURCE-ROOT
"""
import pathlib
import re
import subprocess
import sys

# Names of the vendor's public interface (NVML API 12 and 13), as far as they are of use here. They are written down from
# its documentation, not from this library: a misspelt one here and there would not be found by any real program.
VENDOR = set('''
nvmlInit nvmlInit_v2 nvmlInitWithFlags nvmlShutdown nvmlErrorString
nvmlSystemGetDriverVersion nvmlSystemGetNVMLVersion nvmlSystemGetCudaDriverVersion nvmlSystemGetCudaDriverVersion_v2
nvmlSystemGetDriverBranch nvmlSystemGetProcessName
nvmlSystemGetConfComputeState nvmlSystemGetConfComputeCapabilities nvmlSystemGetConfComputeSettings
nvmlSystemGetConfComputeGpusReadyState
nvmlDeviceGetCount nvmlDeviceGetCount_v2 nvmlDeviceGetHandleByIndex nvmlDeviceGetHandleByIndex_v2
nvmlDeviceGetHandleBySerial nvmlDeviceGetHandleByUUID nvmlDeviceGetHandleByPciBusId nvmlDeviceGetHandleByPciBusId_v2
nvmlDeviceGetName nvmlDeviceGetBrand nvmlDeviceGetIndex nvmlDeviceGetSerial nvmlDeviceGetModuleId nvmlDeviceGetUUID
nvmlDeviceGetMinorNumber nvmlDeviceGetMemoryAffinity nvmlDeviceGetCpuAffinity nvmlDeviceGetCpuAffinityWithinScope
nvmlDeviceGetNumaNodeId nvmlDeviceGetPciInfo nvmlDeviceGetPciInfo_v2 nvmlDeviceGetPciInfo_v3
nvmlDeviceGetVbiosVersion nvmlDeviceGetGspFirmwareVersion nvmlDeviceGetInforomImageVersion
nvmlDeviceGetArchitecture nvmlDeviceGetCudaComputeCapability nvmlDeviceGetNumGpuCores
nvmlDeviceGetPersistenceMode nvmlDeviceGetComputeMode nvmlDeviceGetPerformanceState
nvmlDeviceGetMemoryInfo nvmlDeviceGetMemoryInfo_v2 nvmlDeviceGetBAR1MemoryInfo
nvmlDeviceGetComputeRunningProcesses nvmlDeviceGetComputeRunningProcesses_v2 nvmlDeviceGetComputeRunningProcesses_v3
nvmlDeviceGetGraphicsRunningProcesses nvmlDeviceGetGraphicsRunningProcesses_v2
nvmlDeviceGetGraphicsRunningProcesses_v3 nvmlDeviceGetMPSComputeRunningProcesses
nvmlDeviceGetMPSComputeRunningProcesses_v2 nvmlDeviceGetMPSComputeRunningProcesses_v3
nvmlDeviceGetRunningProcessDetailList nvmlDeviceGetProcessUtilization nvmlDeviceGetProcessesUtilizationInfo
nvmlDeviceGetEccMode nvmlDeviceGetTotalEccErrors nvmlDeviceGetRemappedRows nvmlDeviceGetTemperature
nvmlDeviceGetPowerUsage nvmlDeviceGetPowerManagementLimit nvmlDeviceGetEnforcedPowerLimit nvmlDeviceGetClockInfo
nvmlDeviceGetFieldValues
nvmlDeviceGetMaxClockInfo nvmlDeviceGetUtilizationRates nvmlDeviceGetFanSpeed
nvmlDeviceGetCurrentClocksEventReasons nvmlDeviceGetCurrentClocksThrottleReasons
nvmlDeviceGetMigMode nvmlDeviceSetMigMode nvmlDeviceGetGpuInstanceProfileInfo nvmlDeviceGetGpuInstanceProfileInfoV
nvmlDeviceGetGpuInstanceProfileInfoByIdV nvmlDeviceGetGpuInstancePossiblePlacements
nvmlDeviceGetGpuInstancePossiblePlacements_v2 nvmlDeviceGetGpuInstanceRemainingCapacity nvmlDeviceCreateGpuInstance
nvmlDeviceCreateGpuInstanceWithPlacement nvmlDeviceGetGpuInstances nvmlDeviceGetGpuInstanceById nvmlGpuInstanceGetInfo
nvmlGpuInstanceDestroy nvmlGpuInstanceGetComputeInstanceProfileInfo nvmlGpuInstanceGetComputeInstanceProfileInfoV
nvmlGpuInstanceGetComputeInstanceRemainingCapacity nvmlGpuInstanceGetComputeInstancePossiblePlacements
nvmlGpuInstanceCreateComputeInstance nvmlGpuInstanceCreateComputeInstanceWithPlacement
nvmlGpuInstanceGetComputeInstances nvmlGpuInstanceGetComputeInstanceById nvmlComputeInstanceGetInfo
nvmlComputeInstanceGetInfo_v2 nvmlComputeInstanceDestroy nvmlDeviceIsMigDeviceHandle nvmlDeviceGetGpuInstanceId
nvmlDeviceGetComputeInstanceId nvmlDeviceGetMaxMigDeviceCount nvmlDeviceGetMigDeviceHandleByIndex
nvmlDeviceGetDeviceHandleFromMigDeviceHandle nvmlDeviceGetAttributes nvmlDeviceGetAttributes_v2
nvmlDeviceGetNvLinkState nvmlDeviceGetNvLinkVersion nvmlDeviceGetNvLinkCapability nvmlDeviceGetNvLinkRemotePciInfo
nvmlDeviceGetNvLinkRemotePciInfo_v2 nvmlDeviceGetNvLinkRemoteDeviceType nvmlDeviceGetTopologyCommonAncestor
nvmlDeviceGetTopologyNearestGpus nvmlDeviceGetP2PStatus nvmlDeviceGetGpuFabricInfo nvmlDeviceGetGpuFabricInfoV
nvmlEventSetCreate nvmlEventSetFree nvmlEventSetWait nvmlEventSetWait_v2 nvmlDeviceRegisterEvents
nvmlDeviceGetSupportedEventTypes nvmlGpmQueryDeviceSupport nvmlGpmSampleAlloc nvmlGpmSampleFree nvmlGpmSampleGet
nvmlGpmMetricsGet nvmlDeviceGetMaxPcieLinkGeneration nvmlDeviceGetMaxPcieLinkWidth nvmlDeviceGetPcieThroughput
'''.split())
OWN = {'bulkhead_simulated'}


def problems(exported, asked):
    return ([f'{n} is not in the vendor\'s header' for n in sorted(exported - VENDOR - OWN)] +
            [f'{n} is asked for by the product and is not there' for n in sorted(asked - exported)] +
            [f'{n} is not there' for n in sorted(OWN - exported)])


def main():
    library, root = sys.argv[1], pathlib.Path(sys.argv[2])
    listing = subprocess.run(['nm', '-D', '--defined-only', library], check=True, capture_output=True, text=True).stdout
    exported = {line.split()[-1].split('@')[0] for line in listing.splitlines()}
    asked = set(re.findall(r'"(nvml\w+)"', (root / 'src/gpu/nvml_calls.def').read_text()))
    bad = problems(exported, asked)
    for line in bad:
        print(f'# {line}')
    results = [('the library has the names it should have', not bad and len(asked) > 40),
               ('a name of no vendor is found', bool(problems(exported | {'nvmlDeviceGetNothing'}, asked))),
               ('a name that is missing is found', bool(problems(exported - {'nvmlDeviceGetName'}, asked))),
               ('a library that does not say it is simulated is found', bool(problems(exported - OWN, asked)))]
    for i, (name, ok) in enumerate(results, 1):
        print(f'{"ok" if ok else "not ok"} {i} - {name}')
    print(f'1..{len(results)}')
    sys.exit(not all(ok for _, ok in results))


main()
