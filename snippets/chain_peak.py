"""The peak of one pass through a chain of 64 equal layers: python -m snippets.chain_peak."""

import torch
from torch import nn

from gradstep import checkpoint_chain, peak_activation_bytes, segment_peak

# --8<-- [start:peak]
layers = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(64)))
rows = torch.ones(4096, 4)  # one activation is 64 kB


def forward(segment):  # nothing is random here: no generator state to keep
    if segment is None:
        return layers(rows)
    return checkpoint_chain(layers, rows, segment, preserve_rng_state=False)


def peak(segment=None):
    layers.zero_grad()
    return peak_activation_bytes(lambda: forward(segment).sum().backward()) / rows.nbytes


# --8<-- [end:peak]


if __name__ == "__main__":
    print(f"no checkpoints: {peak():.2f} activations")
    for segment in (1, 2, 4, 8, 16, 32, 64):
        print(f"k = {segment}: {peak(segment):.2f}, L/k + k = {segment_peak(64, segment)}")
