import torch

from pelton import aot
from pelton.aot.capture.example_inputs import example_call


def test_sizes_are_the_usual_ones_and_constants_stay() -> None:
    n = aot.NamedDimension("n", 1, 5, 9)

    def function(x, pair, *, scale, steps):
        return x * scale + pair["a"] * steps

    out = aot.export(
        function,
        args=[aot.InputInfo((n, 2), torch.float32), {"a": aot.InputInfo((n, 1), torch.int64)}],
        kwargs={"scale": 2.0, "steps": aot.DimensionInputInfo((1, 3, 4))},
    )
    args, kwargs = example_call(out.signatures["main"])
    assert args[0].shape == (5, 2)
    assert set(args[1]["a"].flatten().tolist()) <= {0, 1}
    assert kwargs == {"scale": 2.0, "steps": 3}


def test_sizes_without_an_optimum_stay_within_their_bounds() -> None:
    bounds = {"x": {0: torch.export.Dim("n", min=2, max=8), 1: torch.export.Dim("m", min=100)}}
    out = aot.export(lambda x: x + 1, args=(torch.ones(3, 200),), dynamic_shapes=bounds)
    args, _ = example_call(out.signatures["main"])
    assert args[0].shape == (8, 100)


def test_the_same_seed_gives_the_same_values() -> None:
    out = aot.export(lambda x: x + 1, args=(torch.ones(3),))
    signature = out.signatures["main"]
    assert torch.equal(example_call(signature, 1)[0][0], example_call(signature, 1)[0][0])
    assert not torch.equal(example_call(signature, 1)[0][0], example_call(signature, 2)[0][0])
