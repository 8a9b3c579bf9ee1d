# SPDX-License-Identifier: Apache-2.0
"""A tenant that trains, and says how far it is: PyTorch, or a stand-in of a few driver calls where there is none.

    inside_train.py SECONDS [--hold GIB] [--over GIB] [--status N]

`began MS`, `have KEY VALUE` for what it sees, then `at MS STEPS` every tenth of a second, `end MS STEPS`. MS is the time of day, so that
tenants can be laid side by side. --hold: memory it keeps beside its model. --over: after a second of training it asks for so much more at
once, says what came of it, and goes on. --status: how it ends.
"""
import argparse
import ctypes
import os
import sys
import time

GIB = 1 << 30
STANDIN = 'STANDIN_FOR_TORCH'  # in the environment: on simulated silicon, where PyTorch does not run


def say(*words):
    print(*words, flush=True)


def now():
    return int(time.time() * 1e3)


class Torch:
    """Four layers of 4096 x 4096, a batch of 4096, Adam: about 1.6 TFLOP a step."""

    def __init__(self, hold):
        import torch  # pylint: disable=import-outside-toplevel
        self.torch = torch
        say('have', 'torch', torch.__version__)
        torch.manual_seed(1)
        layers = [m for _ in range(4) for m in (torch.nn.Linear(4096, 4096), torch.nn.GELU())][:-1]
        self.model = torch.nn.Sequential(*layers).cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, fused=True)
        self.x = torch.randn(4096, 4096, device='cuda')
        self.y = torch.randn(4096, 4096, device='cuda')
        self.held = torch.full((hold,), 1, dtype=torch.uint8, device='cuda') if hold else None
        self.loss = None
        for _ in range(3):
            self.step()
        say('have', 'first-loss', f'{self.value():.6f}')
        say('have', 'processors', torch.cuda.get_device_properties(0).multi_processor_count)
        free, total = torch.cuda.mem_get_info()
        say('have', 'memory-total', total)
        say('have', 'memory-free', free)

    def step(self):
        with self.torch.autocast('cuda', dtype=self.torch.bfloat16):
            self.loss = (self.model(self.x) - self.y).float().square().mean()
        self.optimizer.zero_grad(set_to_none=True)
        self.loss.backward()
        self.optimizer.step()

    def steps(self):
        for _ in range(4):
            self.step()
        self.torch.cuda.synchronize()
        return 4

    def value(self):
        return self.loss.item()

    def ask(self, size):
        try:
            more = self.torch.empty(size, dtype=self.torch.uint8, device='cuda')
        except self.torch.cuda.OutOfMemoryError as e:
            self.torch.cuda.empty_cache()
            return f'refused {type(e).__name__}: {str(e).splitlines()[0][:160]}'
        del more
        self.torch.cuda.empty_cache()
        return 'given'

    def last(self):
        say('have', 'reserved', self.torch.cuda.memory_reserved())
        say('have', 'allocated', self.torch.cuda.memory_allocated())


class Standin:
    """Kernels whose length their name tells the simulated library (4 ms each), on the driver library's own interface."""
    PTX = b'.version 7.0\n.target sm_80\n.address_size 64\n.visible .entry step_4ms()\n{\n ret;\n}\n\0'

    def __init__(self, hold):
        self.cuda = ctypes.CDLL('libcuda.so.1')
        device, context, module, self.kernel = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.must(self.cuda.cuInit(0))
        self.must(self.cuda.cuDeviceGet(ctypes.byref(device), 0))
        self.must(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        self.must(self.cuda.cuCtxSetCurrent(context))
        self.must(self.cuda.cuModuleLoadData(ctypes.byref(module), self.PTX))
        self.must(self.cuda.cuModuleGetFunction(ctypes.byref(self.kernel), module, b'step_4ms'))
        if self.ask(hold + GIB, keep=True) != 'given':
            sys.exit('the stand-in did not get its memory')
        say('have', 'stand-in', 'no PyTorch: kernels of a simulated library')
        say('have', 'first-loss', '1.0')

    @staticmethod
    def must(rc):
        if rc:
            sys.exit(f'CUDA error {rc}')

    def steps(self):
        one = ctypes.c_uint(1)
        for _ in range(4):
            self.must(self.cuda.cuLaunchKernel(self.kernel, one, one, one, one, one, one, ctypes.c_uint(0), None, None, None))
        self.must(self.cuda.cuCtxSynchronize())
        return 4

    @staticmethod
    def value():
        return 0.5

    def ask(self, size, keep=False):
        at = ctypes.c_uint64()
        rc = self.cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size))
        if rc == 0 and not keep:
            self.must(self.cuda.cuMemFree_v2(at))
        return 'given' if rc == 0 else f'refused CUDA error {rc}'

    def last(self):
        pass


def main():
    p = argparse.ArgumentParser()
    p.add_argument('seconds', type=float)
    p.add_argument('--hold', type=float, default=0)
    p.add_argument('--over', type=float, default=0)
    p.add_argument('--status', type=int, default=0)
    o = p.parse_args()
    say('began', now())
    work = (Standin if os.environ.get(STANDIN) else Torch)(int(o.hold * GIB))
    start = told = time.monotonic()
    steps, over = 0, o.over
    say('at', now(), 0)
    while time.monotonic() - start < o.seconds:
        steps += work.steps()
        if time.monotonic() - told >= 0.1:
            told = time.monotonic()
            say('at', now(), steps)
        if over and time.monotonic() - start > 1:
            say('over', f'{over:g} GiB', work.ask(int(over * GIB)))
            over = 0
    say('have', 'last-loss', f'{work.value():.6f}')
    work.last()
    say('end', now(), steps)
    sys.exit(o.status)


main()
