"""Model repositories: their configurations are read by a parser of the documented fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from pelton import aot
from pelton.aot.raising.fx import open_source
from pelton.aot.raising.onnx import to_onnx
from pelton.cli import main
from pelton.cli.triton_config import render
from pelton.runtime.artifacts.trtm import write_trtm

from ..packages import package_of, write_package
from ..runtime.programs import Counter, add, plus_number, rows, shared_rows

pytest.importorskip("onnxscript")

Capture = pytest.CaptureFixture[str]
Field = descriptor_pb2.FieldDescriptorProto

# Of the server's model_config.proto: fields of each message with number and type, `*`: repeated.
MESSAGES = {
    "ModelConfig": {
        "name": (1, "string"), "platform": (2, "string"), "max_batch_size": (4, "int32"),
        "input": (5, "*ModelInput"), "output": (6, "*ModelOutput"),
        "instance_group": (7, "*ModelInstanceGroup"),
        "dynamic_batching": (11, "ModelDynamicBatching"),
        "sequence_batching": (13, "ModelSequenceBatching"),
    },
    "ModelInput": {
        "name": (1, "string"), "data_type": (2, "DataType"), "dims": (4, "*int64"),
        "reshape": (5, "ModelTensorReshape"), "is_shape_tensor": (6, "bool"),
    },
    "ModelOutput": {
        "name": (1, "string"), "data_type": (2, "DataType"), "dims": (3, "*int64"),
        "reshape": (5, "ModelTensorReshape"), "is_shape_tensor": (6, "bool"),
    },
    "ModelTensorReshape": {"shape": (1, "*int64")},
    "ModelInstanceGroup": {
        "count": (2, "int32"), "kind": (4, "Kind"), "profile": (5, "*string"),
    },
    "ModelDynamicBatching": {"preferred_batch_size": (1, "*int32")},
    "ModelSequenceBatching": {"state": (5, "*State")},
    "State": {
        "input_name": (1, "string"), "output_name": (2, "string"), "data_type": (3, "DataType"),
        "dims": (4, "*int64"), "initial_state": (5, "*InitialState"),
    },
    "InitialState": {
        "data_type": (1, "DataType"), "dims": (2, "*int64"), "zero_data": (3, "bool"),
        "data_file": (4, "string"), "name": (5, "string"),
    },
}  # fmt: skip
ENUMS = {
    "DataType": [
        f"TYPE_{name}"
        for name in (
            "INVALID BOOL UINT8 UINT16 UINT32 UINT64 INT8 INT16 INT32 INT64 FP16 FP32 FP64 STRING "
            "BF16"
        ).split()
    ],
    "Kind": ["KIND_AUTO", "KIND_GPU", "KIND_CPU", "KIND_MODEL"],
}


@pytest.fixture(scope="module")
def model_config() -> Any:
    """Return the message type `ModelConfig`."""
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="inference", syntax="proto3")
    for name, words in ENUMS.items():
        enum = file.enum_type.add(name=name)
        for number, word in enumerate(words):
            enum.value.add(name=word, number=number)
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            label = Field.LABEL_REPEATED if kind[0] == "*" else Field.LABEL_OPTIONAL
            made = message.field.add(name=field, number=number, label=label)
            plain = kind.lstrip("*")
            if plain in MESSAGES:
                made.type, made.type_name = Field.TYPE_MESSAGE, f".inference.{plain}"
            elif plain in ENUMS:
                made.type, made.type_name = Field.TYPE_ENUM, f".inference.{plain}"
            else:
                made.type = getattr(Field, f"TYPE_{plain.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("inference.ModelConfig"))


@pytest.fixture
def served(model_config: Any, tmp_path: Path) -> Any:
    """Return what writes a repository for a package and reads a configuration of it."""

    def serve(package: Path, *arguments: str, model: str = "m") -> Any:
        repository = str(tmp_path / "repo")
        assert main(["triton-repo", str(package), "-o", repository, *arguments]) == 0
        text = (tmp_path / "repo" / model / "config.pbtxt").read_text()
        config = text_format.Parse(text, model_config())
        assert config.name == model
        return config

    return serve


def exported(program: Any, args: Any, folder: Path, **changes: Any) -> Path:
    changes = {"flavor": "tensorrt", "engine_version": "10.9.0.34", **changes}
    return write_package(aot.export(program, args=args), folder, **changes)


def test_first_dimension_that_all_share_is_batched(served: Any, tmp_path: Path) -> None:
    config = served(exported(add, shared_rows(), tmp_path))
    assert (config.platform, config.max_batch_size) == ("tensorrt_plan", 8)
    assert [(i.name, i.data_type, list(i.dims)) for i in config.input] == [
        ("x", 11, [4]), ("y", 11, [4]),
    ]  # fmt: skip
    assert [(o.name, list(o.dims)) for o in config.output] == [("result", [4])]
    assert list(config.dynamic_batching.preferred_batch_size) == [3]
    assert [(g.kind, g.count, list(g.profile)) for g in config.instance_group] == [(1, 1, [])]
    plan = tmp_path / "repo" / "m" / "1" / "model.plan"
    assert plan.read_bytes() == b"engine of main"


def test_batching_can_be_left_out(served: Any, tmp_path: Path) -> None:
    config = served(exported(add, shared_rows(), tmp_path), "--no-batching")
    assert config.max_batch_size == 0 and not config.HasField("dynamic_batching")
    assert list(config.input[0].dims) == [-1, 4]


@pytest.mark.parametrize(
    ("program", "args"),
    [
        (lambda x: x.sum(0), [rows(1, 8)]),
        (lambda x: x + 1, [rows(2, 8)]),
        (lambda x: x @ x.T, [rows(1, 8)]),
        (lambda x: torch.cat([x, x]), [rows(1, 8)]),
        (lambda x: x[x[:, 0] > 0], [rows(1, 8)]),
        (add, [rows(1, 8), aot.InputInfo((4,), torch.float32)]),
    ],
    ids=["sum", "at least 2", "on a second axis", "another size", "by values", "not of all"],
)
def test_other_dimensions_are_not_batched(
    served: Any, tmp_path: Path, program: Any, args: Any
) -> None:
    config = served(exported(program, args, tmp_path))
    assert config.max_batch_size == 0 and not config.HasField("dynamic_batching")
    assert list(config.input[0].dims) == [-1, 4]


def test_numbers_are_reshaped_from_one_element(served: Any, tmp_path: Path) -> None:
    args = (torch.zeros(4), aot.DimensionInputInfo((1, 2, 100)))
    config = served(exported(plus_number, args, tmp_path))
    number = config.input[1]
    assert (number.name, number.data_type, list(number.dims)) == ("n", 9, [1])
    assert number.HasField("reshape") and list(number.reshape.shape) == []
    assert number.is_shape_tensor and not config.input[0].is_shape_tensor


class Sums(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
        self.register_buffer("scale", torch.arange(3.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        self.scale.mul_(2)
        return self.total * self.scale[1]


def test_state_is_kept_for_each_sequence(served: Any, tmp_path: Path) -> None:
    config = served(exported(Sums(), (torch.zeros(4),), tmp_path))
    total, scale = sorted(config.sequence_batching.state, key=lambda s: s.input_name, reverse=True)
    assert (total.input_name, total.output_name) == ("state.total", "new_state.total")
    assert list(total.dims) == [4] and total.initial_state[0].zero_data
    assert scale.initial_state[0].data_file == "scale"
    data = (tmp_path / "repo" / "m" / "initial_state" / "scale").read_bytes()
    np.testing.assert_array_equal(np.frombuffer(data, np.float32), [0, 1, 2])
    assert [i.name for i in config.input] == ["x"]


def test_onnxruntime_serves_what_the_server_has_no_engines_for(served: Any, tmp_path: Path) -> None:
    package = exported(add, shared_rows(), tmp_path, flavor="rtx")
    config = served(package, "--backend", "onnxruntime", "--name", "adds", model="adds")
    assert config.platform == "onnxruntime_onnx"
    assert (tmp_path / "repo" / "adds" / "1" / "model.onnx").stat().st_size > 100


class Two(aot.CompiledModule):
    kept = aot.export_global(
        aot.AbstractTensor(4, dtype=torch.float32), mutable=True, uninitialized=False
    )

    def put(self, x=aot.AbstractTensor(4, dtype=torch.float32)):
        self.kept = x

    def twice(self, x=aot.AbstractTensor(4, dtype=torch.float32)):
        return aot.jittable(lambda a: a * 2)(x)

    def get(self):
        return self.kept


def refused(package: Path, capsys: Capture, *arguments: str) -> str:
    repository = package.parent / "repo"
    assert main(["triton-repo", str(package), "-o", str(repository), *arguments]) == 1
    assert not repository.exists()
    return capsys.readouterr().err


def test_each_entry_point_is_a_model(served: Any, tmp_path: Path) -> None:
    class Pair(aot.CompiledModule):
        def once(self, x=aot.AbstractTensor(4, dtype=torch.float32)):
            return aot.jittable(lambda a: a + 1)(x)

        def twice(self, x=aot.AbstractTensor(4, dtype=torch.float32)):
            return aot.jittable(lambda a: a * 2)(x)

    package = write_package(aot.export(Pair), tmp_path, "once", "twice", flavor="tensorrt")
    served(package, model="m_twice")
    assert sorted(p.name for p in (tmp_path / "repo").iterdir()) == ["m_once", "m_twice"]


def test_model_that_is_there_already_is_kept(served: Any, tmp_path: Path, capsys: Capture) -> None:
    package = exported(add, shared_rows(), tmp_path)
    served(package)
    assert main(["triton-repo", str(package), "-o", str(tmp_path / "repo")]) == 1
    assert "has a model m already; remove it, or give another --name" in capsys.readouterr().err
    served(package, "--name", "n", model="n")


def test_engines_of_rtx_are_refused(tmp_path: Path, capsys: Capture) -> None:
    text = refused(exported(add, shared_rows(), tmp_path, flavor="rtx"), capsys)
    assert text == (
        "pelton: error: entry point 'main' cannot be served: the server runs engines of TensorRT, "
        "these are of TensorRT-RTX; compile it with flavor='tensorrt', or let --backend "
        "onnxruntime run its ONNX graph\n"
    )


def test_state_that_the_server_cannot_keep_is_refused(tmp_path: Path, capsys: Capture) -> None:
    shared = write_package(aot.export(Two), tmp_path, "put", "get", flavor="tensorrt")
    assert "state 'kept' is shared with get, and models of the server share none" in refused(
        shared, capsys
    )
    alone = write_package(aot.export(Two), tmp_path, "put", flavor="tensorrt")
    assert "state 'kept' is only written, the server keeps what is both" in refused(alone, capsys)
    scalar = exported(Counter(), (torch.zeros(4),), tmp_path)
    assert "state 'calls' has no dimensions, which the server needs" in refused(scalar, capsys)


def test_weights_that_are_inputs_are_refused(tmp_path: Path, capsys: Capture) -> None:
    out = aot.export(torch.nn.Linear(4, 3), args=(torch.zeros(2, 4),))
    program = to_onnx(open_source(out.mlir_module), weights_as_inputs=True)
    write_trtm(tmp_path / "m.trtm", *package_of([program], tmp_path, flavor="tensorrt"))
    text = refused(tmp_path / "m.trtm", capsys)
    assert "2 weights are inputs of it, which the server cannot keep" in text


def test_types_that_the_server_lacks_are_refused(tmp_path: Path, capsys: Capture) -> None:
    x = torch.zeros(2, dtype=torch.float8_e4m3fn)
    path = exported(lambda x: x.float(), (x,), tmp_path)
    assert "the server has no float8_e4m3fn, the type of x" in refused(path, capsys)


def test_text_of_names_is_quoted(model_config: Any) -> None:
    name = 'a"b\\c\nü'
    assert text_format.Parse(render({"name": name}), model_config()).name == name
