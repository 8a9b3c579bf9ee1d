# SPDX-License-Identifier: Apache-2.0
"""Holds so many GiB of known content, and says at the end whether they are what they were."""
import sys

import torch

CHUNK = 1 << 30
torch.manual_seed(7)
held = [torch.randint(0, 256, (CHUNK,), dtype=torch.uint8, device='cuda') for _ in range(int(sys.argv[1]))]
sums = [int(t.view(torch.int64).sum()) for t in held]
torch.cuda.synchronize()
print('ready', flush=True)
sys.stdin.readline()
print('intact' if [int(t.view(torch.int64).sum()) for t in held] == sums else 'CHANGED', flush=True)
