#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's start, a training step, an inference and a graph replay, each behind a mark, for bulkhead-record."""
import ctypes
import sys

libc = ctypes.CDLL(None)


def mark(name):
    """A word to the recorder; without one the call fails and nothing happens."""
    libc.ioctl(-1, ctypes.c_ulong(0xb01c3ead), name.encode())


def network(torch):
    return torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 16)).cuda()


def train(torch, model):
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(3):
        mark(f'train-{step + 1}')
        optimiser.zero_grad()
        loss = model(torch.ones(64, 256, device='cuda')).square().mean()
        loss.backward()
        optimiser.step()
        torch.cuda.synchronize()


def replay(torch):
    graph = torch.cuda.CUDAGraph()
    x = torch.ones(1 << 20, device='cuda')
    torch.cuda.synchronize()
    mark('graph-capture')
    with torch.cuda.graph(graph):
        y = x * 2 + 1
    mark('graph-replay')
    graph.replay()
    torch.cuda.synchronize()
    assert float(y[0]) == 3.0


def main():
    mark('import')
    import torch
    if not torch.cuda.is_available():
        sys.exit('torch_step.py: no GPU for PyTorch')
    mark('start')
    torch.cuda.init()
    torch.ones(1, device='cuda')
    torch.cuda.synchronize()
    mark('model')
    model = network(torch)
    torch.cuda.synchronize()
    train(torch, model)
    mark('inference')
    with torch.inference_mode():
        out = model(torch.ones(8, 256, device='cuda'))
    torch.cuda.synchronize()
    assert out.shape == (8, 16)
    replay(torch)
    mark('empty-cache')
    torch.cuda.empty_cache()
    mark('end')


main()
