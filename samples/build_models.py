"""A build file: two models exported at the same time, one with its weights in an archive.

    python -m iree.build samples/build_models.py --output-dir out --iree-hal-target-device=cpu

or, as it is a program as well, `python samples/build_models.py --output-dir out ...`. `--list`
shows what can be built; `--help` shows all options, `--width` among them.
"""

from __future__ import annotations

import torch
from iree.build import cl_arg, compile, entrypoint, iree_build_main
from torch import nn

from pelton.aot import ExportOutput, InputInfo, NamedDimension, ParameterArchiveBuilder, export
from pelton.aot.build_actions import turbine_generate


def classifier(width: int) -> ExportOutput:
    """Two linear layers, with the weights in the module."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, 4)).eval()
    batch = NamedDimension("batch", 1, 4, 64)
    return export(model, args=(InputInfo((batch, 16), torch.float32),))


def encoder(width: int) -> tuple[ExportOutput, ParameterArchiveBuilder]:
    """One transformer layer, with the weights in an archive of their own."""
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True).eval()
    exported = export(model, args=(torch.zeros(1, 8, width),), external_parameters=True)
    weights = ParameterArchiveBuilder()
    weights.add_module(model)
    return exported, weights


@entrypoint(description="A classifier and an encoder, compiled")
def models(width=cl_arg("width", type=int, default=64, help="Width of the models")):
    turbine_generate(classifier, width, name="classifier")
    _, weights = turbine_generate(encoder, width, name="encoder")
    return [
        *compile(name="classifier", source="classifier.mlir"),
        *compile(name="encoder", source="encoder_0.mlir"),
        weights,
    ]


if __name__ == "__main__":
    iree_build_main()
