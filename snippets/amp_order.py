"""One update through a gradient scaler, clipped before or after unscaling."""

import torch
from torch import nn

from gradstep import clip_grad_norm_


# --8<-- [start:moved]
def moved(unscale_first, scale):
    w = nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([w], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    scaler.scale(w @ torch.tensor([3.0, 4.0])).backward()
    if unscale_first:
        scaler.unscale_(optimizer)
    clip_grad_norm_(w, max_norm=1.0)
    scaler.step(optimizer)  # unscales if nobody has done it
    return w.detach().norm().item()


# --8<-- [end:moved]


if __name__ == "__main__":
    for scale in (1.0, 1024.0, 65536.0):
        print(f"{scale:6.0f}: right {moved(True, scale):.4f}, wrong {moved(False, scale):.7f}")
