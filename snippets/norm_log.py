"""Log gradient norms over a short run, and compare thresholds by what they lead to.

One batch in fifty arrives with its targets in the wrong unit. Run as a file, this prints
the comparison over five seeds: python -m snippets.norm_log (about half a minute on two cores).
"""

import torch
from torch import nn

from gradstep import clip_grad_norm_, global_norm


# --8<-- [start:helpers]
def batch(rows):
    x = torch.randn(rows, 8, dtype=torch.float64)
    return x, (x[:, :1] * x[:, 1:2]).sin() + x[:, 2:3].abs()


@torch.no_grad()
def held_out_loss(model):
    torch.manual_seed(1)
    x, y = batch(2000)
    return nn.functional.mse_loss(model(x), y).item()


def flat(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


# --8<-- [end:helpers]


# --8<-- [start:train]
def train(max_norm, optimizer_class, seed=24, updates=300, **options):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)).double()
    optimizer = optimizer_class(model.parameters(), **options)
    log = []
    for update in range(updates):
        x, y = batch(32)
        if update % 50 == 30:
            y = 100 * y  # centimetres where metres are meant
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        pre = clip_grad_norm_(model.parameters(), max_norm)
        post = global_norm([p.grad for p in model.parameters()])
        before = flat(model)
        optimizer.step()
        moved = (flat(model) - before).norm()
        log.append((pre.item(), post.item(), moved.item()))
    return held_out_loss(model), *torch.tensor(log, dtype=torch.float64).T


# --8<-- [end:train]


# --8<-- [start:optimizers]
SGD = {"optimizer_class": torch.optim.SGD, "lr": 0.05, "momentum": 0.9}
ADAMW = {"optimizer_class": torch.optim.AdamW, "lr": 0.01}
# --8<-- [end:optimizers]


def main() -> None:
    """Print the held-out losses of five seeds for every threshold."""
    for name, options in [("SGD with momentum", SGD), ("AdamW", ADAMW)]:
        for max_norm in (float("inf"), 10, 1, 0.1, 0.01):
            losses = sorted(train(max_norm, seed=seed, **options)[0] for seed in range(5))
            print(f"{name:17} {max_norm:5}: held-out losses {losses[0]:.2g} to {losses[-1]:.2g}")


if __name__ == "__main__":
    main()
