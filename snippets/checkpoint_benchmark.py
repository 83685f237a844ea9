"""Ten layers on a GPU, with and without checkpoints: python -m snippets.checkpoint_benchmark.

It prints what it measures and asserts only that loss and gradients agree.
"""

# --8<-- [start:program]
import statistics
import time

import torch
from torch import nn

from gradstep import checkpoint_chain


def build(width):
    torch.manual_seed(0)
    wide = 4 * width
    return nn.Sequential(
        *(
            nn.Sequential(
                nn.LayerNorm(width),
                nn.Linear(width, wide),
                nn.GELU(),
                nn.Dropout(0.1),
                nn.Linear(wide, width),
            )
            for _ in range(10)
        )
    )


def forward_backward(layers, rows, segment):
    layers.zero_grad()
    torch.manual_seed(1)  # the same dropout in every pass
    outputs = checkpoint_chain(layers, rows, segment) if segment else layers(rows)
    loss = outputs.square().mean()
    del outputs  # a name keeps it alive during backward
    loss.backward()
    return loss.detach()


def measure(layers, rows, segment, passes):
    for _ in range(3):  # warm up
        forward_backward(layers, rows, segment)
    layers.zero_grad()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()  # what the run before has reserved
    torch.cuda.reset_peak_memory_stats()
    milliseconds = []
    for _ in range(passes):
        start = time.perf_counter()
        loss = forward_backward(layers, rows, segment)
        torch.cuda.synchronize()
        milliseconds.append(1000 * (time.perf_counter() - start))
    allocated, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    gradient = torch.cat([p.grad.flatten() for p in layers.parameters()])
    return allocated / 1e6, reserved / 1e6, statistics.median(milliseconds), loss, gradient


def main(device="cuda", width=1024, count=4096, passes=10):
    layers = build(width).to(device)
    rows = torch.randn(count, width, device=device)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, float32, {count} rows")
    expected_loss, expected = None, None
    for segment in (None, 1, 2, 5, 10):
        allocated, reserved, ms, loss, gradient = measure(layers, rows, segment, passes)
        if segment is None:
            expected_loss, expected = loss, gradient
        error = ((gradient - expected).norm() / expected.norm()).item()
        name = f"segments of {segment}" if segment else "no checkpoints"
        print(
            f"{name:14}: allocated {allocated:.0f} MB, reserved {reserved:.0f} MB, median "
            f"{ms:.1f} ms, loss {loss.item():.6f}, gradient off by {error:.1e}"
        )
        # the same arithmetic, but kernels may sum in another order each time
        assert torch.allclose(loss, expected_loss, rtol=1e-5)
        assert error < 1e-4 < expected.norm()


# --8<-- [end:program]


if __name__ == "__main__":
    if not torch.cuda.is_available():
        raise SystemExit("this benchmark measures a CUDA device, and torch sees none here")
    main()
