"""What a solution of state-sizes must do."""

import math

import numpy as np
from grader import Check, Mistake

FUNCTIONS = {"state_bytes": ("shapes", "trained", "dtype", "optimizer", "master")}
BYTES = {"float16": 2, "float32": 4, "float64": 8}
MOMENTS = {"sgd": 0, "momentum": 1, "adam": 2, "amsgrad": 3}
KINDS = ("parameters", "gradients", "moments", "master_weights")
LARGE = [(400_000_000,)]
MODEL = [(250, 64), (64,), (64, 3, 7), (3,)]


def right(shapes, trained, dtype, optimizer, master):
    sizes = [math.prod(shape) for shape in shapes]
    count = sum(size for size, learns in zip(sizes, trained, strict=True) if learns)
    moment = 4 if master else BYTES[dtype]
    values = (
        BYTES[dtype] * sum(sizes),
        BYTES[dtype] * count,
        moment * MOMENTS[optimizer] * count,
        4 * count * master,
    )
    return dict(zip(KINDS, values, strict=True)) | {"total": sum(values)}


def wrong(kind, value, message):
    """The mistake that the bytes of one kind are a wrong number, a function of the arguments."""
    return Mistake(
        message,
        when=lambda result, *args: result[kind] == value(*args) != right(*args)[kind],
    )


def plain(kind):
    """The bytes of a kind, as if the model had these shapes, all trained, in this dtype."""
    return lambda shapes, trained, dtype, optimizer, master: right(
        shapes, [True] * len(shapes), dtype, optimizer, master
    )[kind]


def in_float32(kind):
    return lambda shapes, trained, dtype, *rest: right(shapes, trained, "float32", *rest)[kind]


def entries(shapes):
    return sum(math.prod(shape) for shape in shapes)


def copies(moments):
    """The bytes of this many moments, in the right dtype."""
    return lambda shapes, trained, dtype, optimizer, master: (
        moments * right(shapes, trained, dtype, "momentum", master)["moments"]
    )


ENTRIES = "Multiply the entries of all shapes, `math.prod(shape)`, by the bytes of an entry."
MISTAKES = (
    Mistake(
        "These are NumPy numbers. In the browser they have 32 bits and overflow from 2 GB on: use "
        "`math.prod` for the entries.",
        when=lambda result, *args: any(isinstance(v, np.generic) for v in result.values()),
    ),
    wrong(
        "parameters",
        lambda shapes, trained, dtype, *rest: 8 * BYTES[dtype] * entries(shapes),
        "These are bits. A byte has eight: `np.dtype(dtype).itemsize` counts bytes.",
    ),
    wrong(
        "parameters",
        lambda shapes, *rest: entries(shapes),
        "These are entries, not bytes. Multiply by `np.dtype(dtype).itemsize`.",
    ),
    wrong(
        "parameters",
        lambda shapes, trained, dtype, *rest: BYTES[dtype] * sum(map(sum, shapes)),
        "The sides of each shape were added. The entries of a tensor are their product.",
    ),
    wrong(
        "parameters",
        in_float32("parameters"),
        "Every entry was counted with 4 bytes, as in float32. Ask the dtype: "
        "`np.dtype(dtype).itemsize`.",
    ),
    wrong(
        "parameters",
        lambda shapes, trained, dtype, *rest: (
            BYTES[dtype] * entries(s for s, learns in zip(shapes, trained, strict=True) if learns)
        ),
        "The frozen parameters are missing. They are stored too, without gradient and moments.",
    ),
    wrong(
        "gradients",
        plain("gradients"),
        "A frozen parameter has no gradient. Count the trained ones only.",
    ),
    wrong(
        "gradients",
        in_float32("gradients"),
        "Gradients have the dtype of the parameters, also where master weights are float32.",
    ),
    wrong(
        "moments",
        plain("moments"),
        "A frozen parameter has no moments. Count the trained ones only.",
    ),
    wrong(
        "moments",
        lambda *args: right(*args[:4], False)["moments"],
        "The optimizer works on the master weights, so its moments are float32, 4 bytes each.",
    ),
    wrong(
        "moments",
        in_float32("moments"),
        "Without master weights the moments have the dtype of the parameters.",
    ),
    wrong(
        "moments",
        copies(0),
        "This optimizer keeps moments for each trained parameter: momentum one, adam two, "
        "amsgrad three.",
    ),
    wrong(
        "moments",
        copies(1),
        "One moment was counted. sgd keeps none, momentum one, adam two, amsgrad three.",
    ),
    wrong(
        "moments",
        copies(2),
        "Two moments were counted, those of Adam. sgd keeps none, momentum one, amsgrad three.",
    ),
    wrong(
        "master_weights",
        lambda *args: 4 * entries(args[0]),
        "Master weights are made for trained parameters, and only if `master` is true.",
    ),
    wrong(
        "master_weights",
        lambda shapes, trained, dtype, *rest: right(shapes, trained, dtype, "sgd", False)[
            "gradients"
        ],
        "Master weights are float32, 4 bytes each, whatever the dtype of the parameters.",
    ),
    Mistake(
        "The total is not the sum of the four kinds.",
        when=lambda result, *args: (
            {kind: result[kind] for kind in KINDS} == {kind: right(*args)[kind] for kind in KINDS}
        ),
    ),
)


def sizes(name, *arguments):
    return Check(name, args=lambda: arguments, returns=right, message=ENTRIES, mistakes=MISTAKES)


CHECKS = [
    sizes("400 million in float32 with Adam: 6.4e9", LARGE, [True], "float32", "adam", False),
    sizes("plain SGD keeps no moments", MODEL, [True] * 4, "float32", "sgd", False),
    sizes("momentum is one", MODEL, [True] * 4, "float32", "momentum", False),
    sizes("AMSGrad keeps three", MODEL, [True] * 4, "float32", "amsgrad", False),
    sizes("float64 has 8 bytes", MODEL, [True] * 4, "float64", "amsgrad", False),
    sizes("float16 without master weights", MODEL, [True] * 4, "float16", "amsgrad", False),
    sizes("float16 with master weights", LARGE, [True], "float16", "amsgrad", True),
    sizes("frozen parameters", MODEL, [False, True, True, False], "float32", "adam", False),
    sizes(
        "frozen ones have no master weights", MODEL, [True, False] * 2, "float16", "amsgrad", True
    ),
    Check(
        "a scalar has one entry, a 0 in a shape none",
        args=lambda: ([(), (0, 5), (2, 3)], [True] * 3, "float32", "sgd", False),
        returns=right,
        message=ENTRIES,
        mistakes=(
            Mistake(
                "The scalar was counted as nothing: the product of the empty shape `()` is 1.",
                when=lambda result, *args: result["parameters"] == 24,
            ),
            Mistake(
                "The shape with a 0 was counted as one entry. A product with 0 is 0.",
                when=lambda result, *args: result["parameters"] == 32,
            ),
            *MISTAKES,
        ),
    ),
    Check(
        "results are Python ints",
        args=lambda: (MODEL, [True] * 4, "float16", "adam", True),
        holds={
            "every result is an int": lambda result, *args: (
                list(map(type, result.values())) == [int] * 5
            )
        },
        message="Use `math.prod`, and divide by nothing: NumPy's integers can overflow, and "
        "floats round.",
        mistakes=MISTAKES[:1],
    ),
]
