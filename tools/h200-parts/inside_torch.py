# SPDX-License-Identifier: Apache-2.0
"""PyTorch as a tenant of bench/govern_cuda's manner: `ready`, a byte, then `at MS STEPS` every tenth of a second.

Usage: inside_torch.py SECONDS [PERCENT [N]]    so much of the time it works, and rests of its own will else, after each N (4) steps; MS is then of the time it
worked
"""
import sys
import time

import torch


def main():
    seconds, part = float(sys.argv[1]), float(sys.argv[2]) / 100 if len(sys.argv) > 2 else 1.0
    at_a_time = int(sys.argv[3]) if len(sys.argv) > 3 else 4
    torch.manual_seed(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(6)]).cuda().bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    x = torch.randn(4096, 4096, device='cuda', dtype=torch.bfloat16)

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(x).float().square().mean().backward()
        optimizer.step()

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    print('ready', flush=True)
    sys.stdin.read(1)
    began = told = time.monotonic()
    steps, rested = 0, 0.0
    while time.monotonic() - began < seconds:
        first = time.monotonic()
        for _ in range(at_a_time):
            step()
        torch.cuda.synchronize()
        steps += at_a_time
        now = time.monotonic()
        if now - told >= 0.1:
            told = now
            print('at', int((now - began - rested) * 1e3), steps, flush=True)
        if part < 1:
            time.sleep((now - first) * (1 / part - 1))
            rested += time.monotonic() - now
    print('end', int((time.monotonic() - began - rested) * 1e3), steps, flush=True)


main()
