/* SPDX-License-Identifier: Apache-2.0 */
/* health.c - memory errors, heat, power, clocks and load. */
#include "simgpu/nvml/api.h"

API(nvmlDeviceGetEccMode, nvml_device_t device, unsigned *now, unsigned *pending)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, now && pending);
    if (c.status != NVML_OK)
        return c.status;
    int status = bh_nv_number(&c, c.gpu->ecc_on, now);
    return status == NVML_OK ? bh_nv_number(&c, c.gpu->ecc_on, pending) : status;
}

API(nvmlDeviceGetTotalEccErrors, nvml_device_t device, unsigned type, unsigned counter,
    unsigned long long *errors)
{
    BH_NV_CALL c =
        bh_nv_enter_device(__func__, device, BH_NV_WHOLE,
                           errors && type <= NVML_ECC_UNCORRECTED && counter <= NVML_ECC_AGGREGATE);
    if (c.status != NVML_OK)
        return c.status;
    /* Corrected ones are counted over the card's life only. */
    if (c.gpu->ecc_on != 1 || (type == NVML_ECC_CORRECTED && counter == NVML_ECC_VOLATILE))
        return NVML_NOT_SUPPORTED;
    *errors = type == NVML_ECC_CORRECTED      ? c.gpu->ecc_corrected
              : counter == NVML_ECC_AGGREGATE ? c.gpu->ecc_uncorrected
                                              : c.gpu->ecc_uncorrected_now;
    return NVML_OK;
}

/* From Ampere on; before that, pages were retired instead. */
API(nvmlDeviceGetRemappedRows, nvml_device_t device, unsigned *corrected, unsigned *uncorrected,
    unsigned *pending, unsigned *failed)
{
    BH_NV_CALL c =
        bh_nv_enter_device(__func__, device, BH_NV_WHOLE, corrected && uncorrected && pending && failed);
    if (c.status == NVML_OK && c.model && bh_nv_capability(c.model) < 80)
        c.status = NVML_NOT_SUPPORTED;
    if (c.status != NVML_OK)
        return c.status;
    *corrected = 0;
    *uncorrected = c.gpu->remapped_rows;
    *pending = c.gpu->remap_pending;
    *failed = c.gpu->remap_failed;
    return NVML_OK;
}

API(nvmlDeviceGetTemperature, nvml_device_t device, unsigned sensor, unsigned *celsius)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, celsius && sensor == 0);
    return c.status == NVML_OK && bh_nv_poll(&c) == NVML_OK ? bh_nv_number(&c, c.gpu->temperature_c, celsius)
                                                            : c.status;
}

API(nvmlDeviceGetPowerUsage, nvml_device_t device, unsigned *mw)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, mw != NULL);
    return c.status == NVML_OK && bh_nv_poll(&c) == NVML_OK ? bh_nv_number(&c, c.gpu->power_mw, mw)
                                                            : c.status;
}

/* Of all fields there is the one that is asked for here. */
API(nvmlDeviceGetFieldValues, nvml_device_t device, int n, struct nvml_field *at)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, at && n > 0);
    if (c.status != NVML_OK || bh_nv_poll(&c) != NVML_OK)
        return c.status;
    for (int i = 0; i < n; i++) {
        at[i].type = NVML_VALUE_UINT;
        at[i].value.u64 = 0;
        at[i].status = at[i].id == NVML_FIELD_POWER_NOW ? bh_nv_number(&c, c.gpu->power_mw, &at[i].value.u32)
                                                        : (int)NVML_NOT_SUPPORTED;
    }
    return NVML_OK;
}

API(nvmlDeviceGetEnforcedPowerLimit, nvml_device_t device, unsigned *mw)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, mw != NULL);
    return c.status == NVML_OK ? bh_nv_number(&c, c.gpu->power_limit_mw, mw) : c.status;
}

API(nvmlDeviceGetPowerManagementLimit, nvml_device_t device, unsigned *mw)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, mw != NULL);
    return c.status == NVML_OK ? bh_nv_number(&c, c.gpu->power_limit_mw, mw) : c.status;
}

/* 0 graphics and 1 multiprocessors run together; 2 is memory, 3 video, which the node does not tell. */
API(nvmlDeviceGetClockInfo, nvml_device_t device, unsigned type, unsigned *mhz)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, mhz && type <= 3);
    if (c.status != NVML_OK || bh_nv_poll(&c) != NVML_OK)
        return c.status;
    const uint32_t clocks[] = {c.gpu->sm_mhz, c.gpu->sm_mhz, c.gpu->memory_mhz, UINT32_MAX};
    return bh_nv_number(&c, clocks[type], mhz);
}

/* A card that is cut has no load as a whole. */
API(nvmlDeviceGetUtilizationRates, nvml_device_t device, struct nvml_utilization *use)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, use != NULL);
    if (c.status == NVML_OK && (c.gpu->mig_on == 1 || c.gpu->util_percent == UINT32_MAX))
        c.status = NVML_NOT_SUPPORTED;
    if (c.status == NVML_OK && bh_nv_poll(&c) == NVML_OK)
        *use = (struct nvml_utilization){c.gpu->util_percent, c.gpu->memory_util_percent};
    return c.status;
}

static int reasons(const char *function, nvml_device_t device, unsigned long long *bits)
{
    BH_NV_CALL c = bh_nv_enter_device(function, device, BH_NV_WHOLE, bits != NULL);
    if (c.status == NVML_OK && bh_nv_poll(&c) == NVML_OK)
        *bits = c.gpu->throttle;
    return c.status;
}

API(nvmlDeviceGetCurrentClocksEventReasons, nvml_device_t device, unsigned long long *bits)
{
    return reasons(__func__, device, bits);
}

API(nvmlDeviceGetCurrentClocksThrottleReasons, nvml_device_t device, unsigned long long *bits)
{
    return reasons(__func__, device, bits);
}

/* Full speed is 0; a card that is slowed down reports the same and says why elsewhere. */
API(nvmlDeviceGetPerformanceState, nvml_device_t device, unsigned *state)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, state != NULL);
    if (c.status == NVML_OK && bh_nv_poll(&c) == NVML_OK)
        *state = 0;
    return c.status;
}
