# SPDX-License-Identifier: Apache-2.0
"""Holds so many GiB of known content, and says at the end whether they are what they were."""
import sys

import torch

CHUNK = 1 << 30
torch.manual_seed(7)
held = [torch.randint(0, 256, (CHUNK,), dtype=torch.uint8, device='cuda') for _ in range(int(sys.argv[1]))]


def sums():
    """Each word counts by its place: pages that come back in another order do not make the same sum."""
    place = torch.arange(CHUNK // 8, dtype=torch.int64, device='cuda') * 2 + 1
    found = [int((t.view(torch.int64) * place * (2 * i + 1)).sum()) for i, t in enumerate(held)]
    del place
    torch.cuda.empty_cache()
    return found


before = sums()
print('ready', flush=True)
sys.stdin.readline()
print('intact' if sums() == before else 'CHANGED', flush=True)
