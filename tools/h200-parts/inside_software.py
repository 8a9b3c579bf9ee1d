# SPDX-License-Identifier: Apache-2.0
"""Software as people use it, one case a run, inside a lease of 10 GiB.

Each asks for far more than there is and must be told so, then fills what there is, gives it back and does its work, with a result that is
checked. Says `key value` lines; `end` is the last one. `skip WHY`: it is not installed here.

Usage: inside_software.py CASE
"""
import ctypes
import glob
import os
import sys

GIB = 1 << 30
BIG, PIECE, AFTER = 20 * GIB, GIB // 2, 4 * GIB


def skip(why):
    print('skip', why, flush=True)
    sys.exit(0)


def say(key, *values):
    print(key, *values, flush=True)


def need(name):
    try:
        return __import__(name)
    except Exception as e:  # noqa: BLE001 - a package that is broken here is as good as none
        skip(f'{name} is not installed: {type(e).__name__} {e}'.replace('\n', ' ')[:200])


def squeeze(torch):
    """All there is, by pieces; then it is given back, and less than that is to be had again."""
    try:
        torch.empty(BIG, dtype=torch.uint8, device='cuda')
        say('big', 'yes')
    except torch.OutOfMemoryError:
        say('big', 'no')
    held = []
    try:
        while len(held) < 100:
            held.append(torch.empty(PIECE, dtype=torch.uint8, device='cuda'))
    except torch.OutOfMemoryError:
        say('filled', len(held) * PIECE)
    del held
    torch.cuda.empty_cache()
    again = torch.ones(AFTER // 4, dtype=torch.float32, device='cuda')
    say('again', int(again[-1000:].sum()) == 1000)


def steps(torch, model, n=5):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randn(256, 512, device='cuda')
    losses = []
    for _ in range(n):
        optimizer.zero_grad()
        loss = (model(x) - 1).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    say('right', losses[-1] < losses[0])


def mlp(torch):
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 1)).cuda()


def eager():
    torch = need('torch')
    free, total = torch.cuda.mem_get_info()
    say('info', free, total)
    say('properties', torch.cuda.get_device_properties(0).total_memory)
    squeeze(torch)
    steps(torch, mlp(torch))


def compiled():
    torch = need('torch')
    need('triton')
    squeeze(torch)
    steps(torch, torch.compile(mlp(torch)), n=4)


def graphs():
    torch = need('torch')
    squeeze(torch)
    a = torch.ones(1 << 20, device='cuda')
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            b = (a * 2).relu() @ torch.ones(1 << 20, device='cuda')
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        b = (a * 2).sum()
    a.fill_(3)
    graph.replay()
    torch.cuda.synchronize()
    say('right', int(b) == 6 << 20)
    squeeze(torch)
    graph.replay()
    torch.cuda.synchronize()
    say('right', int(b) == 6 << 20)


def expandable():
    torch = need('torch')
    squeeze(torch)
    steps(torch, mlp(torch))
    # Pieces of every size, in no order: what expandable segments are for.
    held = [torch.full((n << 20,), n % 100, dtype=torch.uint8, device='cuda') for n in (3, 700, 41, 900, 5, 350, 1200)]
    del held[1::2]
    whole = torch.full((5 << 30,), 7, dtype=torch.uint8, device='cuda')
    say('right', all(int(h[0]) == int(h[-1]) for h in held) and int(whole[-1]) == 7)


def blas_torch():
    torch = need('torch')
    squeeze(torch)
    a = torch.ones(4096, 4096, device='cuda', dtype=torch.bfloat16)
    say('right', float((a @ a)[17, 23]) == 4096.0)
    b = torch.arange(512 * 512, device='cuda', dtype=torch.float64).reshape(512, 512)
    say('right', bool(torch.allclose((b @ b).cpu(), b.cpu() @ b.cpu())))


def cublas():
    names = [n for p in sys.path + ['/usr/local/cuda/lib64'] for n in
             glob.glob(os.path.join(p, 'nvidia', '*', 'lib', 'libcublas.so.*')) + glob.glob(os.path.join(p, 'libcublas.so.*'))]
    cuda, library = ctypes.CDLL('libcuda.so.1'), None
    for name in [*sorted(names), 'libcublas.so.13', 'libcublas.so.12']:
        try:
            library = ctypes.CDLL(name)
            break
        except OSError:
            continue
    if library is None:
        skip('libcublas was not found')

    def must(rc, call):
        if rc:
            sys.exit(f'{call}: {rc}')

    n, one, zero = 256, ctypes.c_float(1), ctypes.c_float(0)
    device, context, handle = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    at, c = ctypes.c_uint64(), ctypes.c_uint64()
    must(cuda.cuInit(0), 'cuInit')
    must(cuda.cuDeviceGet(ctypes.byref(device), 0), 'cuDeviceGet')
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), 'cuDevicePrimaryCtxRetain')
    must(cuda.cuCtxSetCurrent(context), 'cuCtxSetCurrent')
    say('big', 'no' if cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(BIG)) == 2 else 'yes')
    held = []
    while cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(PIECE)) == 0:
        held.append(at.value)
    say('filled', len(held) * PIECE)
    for a in held:
        must(cuda.cuMemFree_v2(ctypes.c_uint64(a)), 'cuMemFree')
    must(library.cublasCreate_v2(ctypes.byref(handle)), 'cublasCreate')
    must(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(AFTER)), 'cuMemAlloc')
    must(cuda.cuMemAlloc_v2(ctypes.byref(c), ctypes.c_size_t(4 * n * n)), 'cuMemAlloc')
    must(cuda.cuMemsetD32_v2(at, 0x3f800000, ctypes.c_size_t(n * n)), 'cuMemset')
    say('again', True)
    must(library.cublasSgemm_v2(handle, 0, 0, n, n, n, ctypes.byref(one), at, n, at, n, ctypes.byref(zero), c, n), 'cublasSgemm')
    got = (ctypes.c_float * (n * n))()
    must(cuda.cuMemcpyDtoH_v2(got, c, ctypes.c_size_t(4 * n * n)), 'cuMemcpyDtoH')
    say('right', all(v == n for v in got))


def cupy():
    cp = need('cupy')
    oom = cp.cuda.memory.OutOfMemoryError
    try:
        cp.empty(BIG, dtype=cp.uint8)
        say('big', 'yes')
    except oom:
        say('big', 'no')
    held = []
    try:
        while len(held) < 100:
            held.append(cp.empty(PIECE, dtype=cp.uint8))
    except oom:
        say('filled', len(held) * PIECE)
    del held
    cp.get_default_memory_pool().free_all_blocks()
    again = cp.ones(AFTER // 4, dtype=cp.float32)
    say('again', float(again[-1000:].sum()) == 1000)
    a = cp.arange(1 << 20, dtype=cp.float64)
    say('right', float((a * 2 - a).sum()) == (2 ** 20 - 1) * 2 ** 19)


def jax():
    jx = need('jax')
    jnp = need('jax.numpy').numpy
    if jx.default_backend() != 'gpu':
        skip(f'JAX uses {jx.default_backend()} here')
    stats = jx.devices()[0].memory_stats() or {}
    say('limit', stats.get('bytes_limit'))
    try:
        jnp.zeros(BIG // 4, dtype=jnp.float32).block_until_ready()
        say('big', 'yes')
    except Exception as e:  # noqa: BLE001 - its class has moved from version to version
        say('big', 'no' if 'RESOURCE_EXHAUSTED' in str(e) or 'out of memory' in str(e).lower() else f'other {type(e).__name__}')
    again = jnp.ones(AFTER // 4, dtype=jnp.float32).block_until_ready()
    say('again', float(again[-1000:].sum()) == 1000)
    del again

    @jx.jit
    def step(w, x):
        return w - 0.01 * jx.grad(lambda v: ((x @ v - 1) ** 2).mean())(w)

    x, w = jnp.ones((256, 512)) / 512, jnp.zeros((512, 1))
    for _ in range(20):
        w = step(w, x)
    say('right', 0 < float(w[0, 0]) < 1)


def triton():
    torch = need('torch')
    need('triton')
    import triton_kernel
    squeeze(torch)
    x = torch.arange(1 << 20, device='cuda', dtype=torch.float32)
    y = triton_kernel.doubled(x)
    say('right', bool((y == 2 * x).all()))


class Numbers:
    def __len__(self):
        return 2048

    def __getitem__(self, i):
        import torch
        return torch.full((512,), float(i))


def loader():
    torch = need('torch')
    import torch.utils.data
    squeeze(torch)
    total, n = 0.0, 0
    batches = torch.utils.data.DataLoader(Numbers(), batch_size=64, num_workers=4, pin_memory=True, persistent_workers=False)
    for batch in batches:
        total += float(batch.cuda(non_blocking=True).double().sum())
        n += batch.is_pinned()
    say('right', total == 512 * 2047 * 1024 and n == 32)
    steps(torch, mlp(torch))


def borrower(queue, back):
    import torch
    t = queue.get()
    t += 1
    torch.cuda.synchronize()
    try:
        torch.empty(BIG, dtype=torch.uint8, device='cuda')
        back.put('yes')
    except torch.OutOfMemoryError:
        back.put('no')
    del t


def sharing():
    torch = need('torch')
    import torch.multiprocessing as mp
    squeeze(torch)
    mp.set_start_method('spawn')
    queue, back = mp.Queue(), mp.Queue()
    p = mp.Process(target=borrower, args=(queue, back))
    p.start()
    t = torch.zeros(64 << 20, device='cuda')
    queue.put(t)
    say('child', back.get(timeout=90))
    p.join(60)
    say('right', p.exitcode == 0 and bool((t == 1).all()))


CASES = {f.__name__: f for f in (eager, compiled, graphs, expandable, blas_torch, cublas, cupy, jax, triton, loader, sharing)}

if __name__ == '__main__':
    CASES[sys.argv[1]]()
    say('end')
