"""Peak live bytes of one update by accumulation, next to what the batch size alone would give."""

import torch
from torch import Tensor

import gradstep
from gradstep import peak_activation_bytes

from .timing import table

ROWS, LENGTH, WIDTH, CLASSES = 32, 64, 128, 500


def report() -> str:
    """The table, as Markdown."""
    torch.set_num_threads(1)
    peaks = {
        size: peak_activation_bytes(lambda size=size: _update(size)) for size in (1, 4, 16, 32)
    }
    # two points give what does not depend on the batch, and what one row adds
    row = (peaks[32] - peaks[16]) / 16
    fixed = peaks[32] - 32 * row
    rows = [
        [f"{ROWS // size} x {size}", f"{peak / 1e6:.1f} MB", f"{(fixed + size * row) / 1e6:.1f} MB"]
        for size, peak in peaks.items()
    ]
    title = f"Peak live bytes of one update, {ROWS} rows, small transformer, float32, SGD"
    return table(title, ["microbatches x rows", "measured", "fixed + rows x bytes a row"], rows)


class Transformer(torch.nn.Module):
    """Two layers over random token embeddings, a class for each position."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(CLASSES, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = torch.nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.layers(self.embed(tokens)))


def _update(size: int) -> None:
    torch.manual_seed(0)
    model = Transformer()
    tokens = torch.randint(0, CLASSES, (ROWS, LENGTH))
    batches = [(part, part) for part in tokens.split(size)]
    list(
        gradstep.updates(
            model,
            batches,
            torch.optim.SGD(model.parameters(), 0.1),
            accumulation_steps=len(batches),
            objective=gradstep.CrossEntropy(class_dim=-1),
        )
    )
