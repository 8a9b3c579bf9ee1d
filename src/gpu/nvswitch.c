/* SPDX-License-Identifier: Apache-2.0 */
/* nvswitch.c - folders and lines of the switch driver. */
#include "gpu/nvswitch.h"

#include "base/str.h"
#include "base/sysfile.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { INFORMATION_MAX = 4096 };

static bool is_hex(char c)
{
    return bh_is_digit(c) || (bh_to_lower(c) >= 'a' && bh_to_lower(c) <= 'f');
}

bool bh_nvswitch_is_pci(const char *s)
{
    static const char form[] = "xxxx:xx:xx.x"; /* as the driver names them */
    if (strlen(s) != sizeof(form) - 1)
        return false;
    for (size_t i = 0; form[i]; i++)
        if (form[i] == 'x' ? !is_hex(s[i]) : s[i] != form[i])
            return false;
    return true;
}

static bool take_version(const char *s, size_t n, char ret[BH_NVSWITCH_BIOS_MAX])
{
    for (; n && (*s == ' ' || *s == '\t'); n--)
        s++;
    while (n && (s[n - 1] == ' ' || s[n - 1] == '\t' || s[n - 1] == '\r'))
        n--;
    if (!n || n >= BH_NVSWITCH_BIOS_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_hex(s[i]) && s[i] != '.')
            return false;
    memcpy(ret, s, n);
    ret[n] = '\0';
    return true;
}

bool bh_nvswitch_bios(const char *text, char ret[BH_NVSWITCH_BIOS_MAX])
{
    static const char key[] = "BIOS Version:";
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (bh_str_starts(line, key))
            return take_version(line + sizeof(key) - 1, strcspn(line + sizeof(key) - 1, "\n"), ret);
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

struct name {
    char pci[16];
};

static void add(struct bh_gpu_snapshot *s, const char *pci)
{
    char path[sizeof(BH_NVSWITCH_FOLDER) + 64], bios[BH_NVSWITCH_BIOS_MAX];
    BH_AUTOFREE char *text = NULL;
    struct bh_err err;
    (void)snprintf(path, sizeof(path), "%s/%.15s/information", BH_NVSWITCH_FOLDER, pci);
    const int rc = bh_sysfile_read(path, INFORMATION_MAX, &text, NULL, &err);
    if (rc < 0)
        bh_gpu_note(s, "NVSwitch %s: %s", pci, err.msg);
    *bh_vec_push(&s->switches) = (struct bh_gpu_switch){
        .pci = bh_arena_str(&s->arena, pci),
        .bios = rc == BH_OK && bh_nvswitch_bios(text, bios) ? bh_arena_str(&s->arena, bios) : NULL};
}

void bh_nvswitch_read(struct bh_gpu_snapshot *s)
{
    char path[BH_SYSPATH_MAX];
    struct name names[BH_NVSWITCH_MOST];
    size_t n = 0;
    bh_gpu_asking_of(BH_NO_ID);
    bh_gpu_asking(BH_NVSWITCH_FOLDER);
    DIR *folder = bh_syspath(path, BH_NVSWITCH_FOLDER) ? opendir(path) : NULL;
    if (!folder) {
        if (errno != ENOENT && errno != ENOTDIR)
            bh_gpu_note(s, "%s: %s", BH_NVSWITCH_FOLDER, strerrordesc_np(errno));
        return;
    }
    for (const struct dirent *e; n < BH_NVSWITCH_MOST && (e = readdir(folder));)
        if (bh_nvswitch_is_pci(e->d_name))
            (void)snprintf(names[n++].pci, sizeof(names[0].pci), "%.15s", e->d_name);
    (void)closedir(folder);
    qsort(names, n, sizeof(names[0]), by_name);
    for (size_t i = 0; i < n; i++)
        add(s, names[i].pci);
}
