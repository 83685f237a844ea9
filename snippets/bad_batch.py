"""One batch of three hundred arrives in the wrong unit: python -m snippets.bad_batch."""

import torch
from torch import nn

from gradstep import clip_grad_norm_


# --8<-- [start:batch]
def batch(rows):
    x = torch.randn(rows, 4)
    return x, (x[:, :1] * x[:, 1:2]).sin() + x[:, 2:3].abs()


# --8<-- [end:batch]


# --8<-- [start:train]
def train(max_norm=None):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    (held_out, target), losses = batch(1000), []
    for update in range(300):
        x, y = batch(32)
        if update == 150:
            y = 100 * y  # one batch in centimetres instead of metres
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        if max_norm is not None:
            clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        losses.append(nn.functional.mse_loss(model(held_out), target).item())
    return losses


# --8<-- [end:train]


if __name__ == "__main__":
    for max_norm in (None, 1.0):
        losses = train(max_norm)
        print(f"max_norm={max_norm}: before {losses[149]:.2f}, at the end {losses[-1]:.2f}")
