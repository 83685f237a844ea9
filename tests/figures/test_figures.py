"""The committed figures are what their scripts draw, from what the functions really do."""

import functools
import math
import re

import pytest
import torch
from snippets import amp_order, bad_batch, norm_log
from snippets.figures import FIGURES, clip_geometry, clocks, decay, mean_of_means, segment_peak
from snippets.figures.theme import FOLDER, THEMES, Theme, render

from gradstep import clip_grad_norm_, global_norm

ID = re.compile(r"\b[a-z]?[0-9a-f]{10}\b")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
EACH = [(name, theme) for name in FIGURES for theme in THEMES]
each_figure = pytest.mark.parametrize(("name", "theme"), EACH, ids=lambda x: getattr(x, "name", x))


@functools.cache
def drawn(name: str, theme: Theme) -> str:
    """The figure as its script draws it now."""
    return render(FIGURES[name], theme)


@each_figure
def test_figure_is_what_its_script_draws(name: str, theme: Theme) -> None:
    committed, now = (
        ID.sub("id", svg)
        for svg in ((FOLDER / f"{name}-{theme.name}.svg").read_text(), drawn(name, theme))
    )
    cure = "run: python -m snippets.figures"
    assert NUMBER.sub("0", committed) == NUMBER.sub("0", now), cure
    # a quarter of a point: other processors round otherwise, no reader sees it
    numbers = [torch.tensor([float(n) for n in NUMBER.findall(svg)]) for svg in (committed, now)]
    assert len(numbers[0]) > 100
    assert torch.allclose(*numbers, rtol=0, atol=0.25), cure


@each_figure
def test_figure_is_small_and_stays_on_this_site(name: str, theme: Theme) -> None:
    svg = (FOLDER / f"{name}-{theme.name}.svg").read_text()
    assert len(svg) < 60_000
    assert "<dc:date>" not in svg
    assert not re.search(r'(?:href|src)="(?!#)|url\((?!#)|<image|<script', svg)


def test_every_committed_figure_has_a_script_and_both_themes() -> None:
    expected = {f"{name}-{theme.name}.svg" for name, theme in EACH}
    assert {path.name for path in FOLDER.iterdir()} == expected


def test_geometry_draws_what_the_functions_return() -> None:
    for gradient in clip_geometry.GRADIENTS:
        by_norm = clip_geometry.clipped(gradient, "norm")
        factor = min(1.0, 1 / math.hypot(*gradient))
        assert by_norm == pytest.approx([factor * x for x in gradient], rel=1e-5)
        assert clip_geometry.clipped(gradient, "value") == pytest.approx(
            [min(x, 1.0) for x in gradient]
        )
    assert clip_geometry.clipped((3.0, 4.0), "norm") == pytest.approx((0.6, 0.8), rel=1e-5)
    corner = [g for g in clip_geometry.GRADIENTS if clip_geometry.clipped(g, "value") == (1, 1)]
    assert len(corner) == 2  # as the caption says
    assert clip_geometry.clipped(clip_geometry.GRADIENTS[-1], "norm") == pytest.approx(
        clip_geometry.GRADIENTS[-1]
    )


def test_bad_batch_ruins_only_the_run_that_never_clips() -> None:
    free, clipped = bad_batch.train(), bad_batch.train(max_norm=1.0)
    assert free[149] < 0.2
    assert free[150] > 10_000
    assert math.isinf(free[154])  # after five updates, as the picture says
    assert math.isnan(free[-1])
    assert max(clipped[150:]) < 1.5 * clipped[149]
    assert clipped[-1] < clipped[149]


def test_norm_log_pins_only_the_norm_after_clipping() -> None:
    _, before, after, _ = norm_log.train(1.0, **norm_log.ADAMW)
    assert (before > 30).nonzero().flatten().tolist() == list(range(30, 300, 50))
    assert after.max() <= 1
    assert before.max() > 100


def test_norm_log_logs_the_norms_of_the_real_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for function in (clip_grad_norm_, global_norm):
        name = function.__name__

        def counted(*args, function=function, name=name):
            calls.append(name)
            return function(*args)

        monkeypatch.setattr(norm_log, name, counted)
    norm_log.train(1.0, updates=3, **norm_log.SGD)
    assert calls == ["clip_grad_norm_", "global_norm"] * 3


def test_amp_order_loses_exactly_the_scale() -> None:
    for scale in (1.0, 1024.0, 65536.0):
        assert amp_order.moved(True, scale) == pytest.approx(1, rel=1e-5)
        assert amp_order.moved(False, scale) == pytest.approx(1 / scale, rel=1e-5)


def test_mean_of_means_is_right_only_for_equal_counts() -> None:
    by_sums, by_means = zip(*map(mean_of_means.errors, mean_of_means.SMALLER), strict=True)
    assert max(by_sums) < 1e-14
    assert by_means[0] < 1e-14  # 32 and 32
    assert list(by_means) == sorted(by_means)
    described = (0.6, 1.2, 1.8, 2.9, 4.0)  # as the picture is described, where it is
    assert by_means[1:] == pytest.approx(described, abs=0.05)


def test_clocks_stand_as_the_picture_says() -> None:
    seen = clocks.run()
    assert [record.accepted for record, _ in seen] == [True, False, True]
    assert math.isinf(seen[1][0].pre_clip_norm)
    assert [tuple(after.values()) for _, after in seen] == [
        (3, 1, 1, 0, 12),
        (6, 2, 1, 1, 12),
        (8, 3, 2, 1, 19),
    ]
    assert list(seen[0][1]) == ["microbatches", "attempted", "accepted", "skipped", "targets"]


def test_decay_of_twice_lies_on_that_of_twice_as_many_updates() -> None:
    ends = [decay.path(*run)[-1] for run in decay.RUNS]
    assert ends == pytest.approx([0.975, 0.951, 0.905, 0.905], abs=5e-4)
    twice = decay.path(50, 0.2)
    assert twice == pytest.approx(decay.path(100, 0.1)[::2], abs=1e-4)


def test_segment_peak_lies_on_the_model_with_its_least_at_the_root() -> None:
    found = {segment: segment_peak.measured(segment) for segment in segment_peak.SEGMENTS}
    # a tenth of an activation: the gradients of the weights
    model = {segment: 64 / segment + segment for segment in segment_peak.SEGMENTS}
    assert found == pytest.approx(model, abs=0.1)
    assert min(found, key=found.__getitem__) == 8
    assert segment_peak.measured() == pytest.approx(65, abs=0.1)
