# SPDX-License-Identifier: Apache-2.0
"""A training step and an inference step of PyTorch, so many times for each line of input (`train N`, `infer N`); says how long it took."""
import sys
import time

try:
    import torch
except ImportError as e:
    print('skip PyTorch is not installed:', e, flush=True)
    sys.exit(0)


class Model(torch.nn.Module):
    def __init__(self, width=1024, layers=4):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(width, 16, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.body = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = torch.nn.Linear(width, 256)

    def forward(self, x):
        return self.head(self.body(x))


def main():
    torch.manual_seed(1)
    model = Model().cuda().bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(8, 256, 1024, device='cuda', dtype=torch.bfloat16)

    def train():
        optimizer.zero_grad(set_to_none=True)
        # Memory comes and goes in every step, as it does where batches differ in length.
        loss = model(x[:, :192 + 64 * (train.step % 2)]).float().square().mean()
        train.step += 1
        loss.backward()
        optimizer.step()

    def infer():
        with torch.inference_mode():
            model(x)

    train.step = 0
    for step in (train, infer) * 3:
        step()
    torch.cuda.synchronize()
    print('ready', flush=True)
    for line in sys.stdin:
        work, n = line.split()
        began = time.perf_counter()
        for _ in range(int(n)):
            (train if work == 'train' else infer)()
        torch.cuda.synchronize()
        print(work, time.perf_counter() - began, flush=True)


main()
