"""safetensors archives: reader and layout, and the index of sharded archives.

A length, a header in JSON, and the contents without gaps. The format cannot store one tensor under
two names: the further names of tied tensors are in `__metadata__`, as name to stored name, as
`safetensors.torch.save_model` writes and `load_model` reads them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..call.dtypes import BY_SAFETENSORS
from ..checked import align, require, require_json
from ..errors import ParameterError
from .layout import DATA_ALIGNMENT, Plan, refuse_unstorable, require_shape
from .parameter import Parameter, size_in_bytes

_METADATA = "__metadata__"


def read(memory: NDArray[np.uint8]) -> list[Parameter]:
    """Return the parameters in the bytes of an archive; their contents are not touched.

    Raises:
        ArtifactError: The bytes are not a valid archive.
    """
    require(len(memory) >= 8, "it ends within the length of the header")
    length = int.from_bytes(memory[:8].tobytes(), "little")
    require(length <= len(memory) - 8, f"its header claims {length} bytes of {len(memory)}")
    header = require_json("header", memory[8 : 8 + length].tobytes())
    contents = memory[8 + length :]
    aliases = header.pop(_METADATA, {})
    require(isinstance(aliases, dict), f"{_METADATA} in the header is not an object")
    tensors = {name: _tensor(name, about, contents) for name, about in header.items()}
    end = 0
    for start, parameter in sorted(tensors.values(), key=lambda item: (item[0], item[1].nbytes)):
        require(
            start == end, f"the contents of {parameter.name!r} start at byte {start}, not at {end}"
        )
        end += parameter.nbytes
    require(end == len(contents), f"its contents are {len(contents)} bytes, not {end}")
    parameters = {name: parameter for name, (_, parameter) in tensors.items()}
    for alias, name in aliases.items():
        if isinstance(name, str) and name in parameters and alias not in parameters:
            stored = parameters[name]
            parameters[alias] = Parameter(
                alias, stored.type_name, stored.shape, stored.nbytes, stored.data
            )
    return list(parameters.values())


def plan(parameters: list[Parameter]) -> Plan:
    """Lay out an archive; parameters that share memory are stored once.

    Contents whose size is a multiple of 64 come first, so that nearly all of them are aligned for
    use without a copy. Splats are expanded; blobs are stored as `uint8`.

    Raises:
        ParameterError: The format cannot store an element type, or reserves a name.
    """
    unstorable = [str(p) for p in parameters if p.type_name and _code(p) is None]
    refuse_unstorable(".safetensors", unstorable)
    if any(parameter.name == _METADATA for parameter in parameters):
        raise ParameterError(f"a .safetensors file cannot hold a parameter named {_METADATA!r}")
    aliases = {"format": "pt"}
    stored: dict[Hashable, Parameter] = {}
    for parameter in parameters:
        first = stored.setdefault(parameter.identity() or parameter.name, parameter)
        if first is not parameter:
            aliases[parameter.name] = first.name
    header: dict[str, Any] = {_METADATA: aliases}
    contents: list[tuple[int, Parameter]] = []
    end = 0
    for parameter in sorted(stored.values(), key=_alignment, reverse=True):
        header[parameter.name] = {
            "dtype": _code(parameter),
            "shape": list(parameter.shape),
            "data_offsets": [end, end + parameter.nbytes],
        }
        contents.append((end, parameter))
        end += parameter.nbytes
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    start = align(8 + len(text), DATA_ALIGNMENT)
    head = (start - 8).to_bytes(8, "little") + text.ljust(start - 8)
    return Plan(head, [(start + offset, p) for offset, p in contents], start + end)


def read_index(path: Path) -> dict[str, list[str]]:
    """Return the names of the tensors in each file of the index of a sharded archive.

    Raises:
        ArtifactError: The file is not such an index, or it lists files outside its folder.
    """
    index = require_json("index", path.read_bytes())
    files = index.get("weight_map")
    require(isinstance(files, dict), "it has no object `weight_map`")
    shards: dict[str, list[str]] = {}
    for name, file in dict(files or {}).items():
        sound = (
            isinstance(file, str) and file == Path(file).name and file != ".." and "\\" not in file
        )
        require(sound, f"it lists {name!r} in {file!r}, which is not a file of the same folder")
        shards.setdefault(file, []).append(name)
    return shards


def _tensor(name: str, about: Any, contents: NDArray[np.uint8]) -> tuple[int, Parameter]:
    require(isinstance(about, dict), f"the header describes {name!r} by {about!r:.80}")
    code, offsets = about.get("dtype"), about.get("data_offsets")
    require(isinstance(code, str), f"{name!r} has no element type")
    sound = (
        isinstance(offsets, list)
        and len(offsets) == 2
        and all(type(offset) is int for offset in offsets)
        and 0 <= offsets[0] <= offsets[1] <= len(contents)
    )
    require(sound, f"{name!r} has offsets {offsets!r:.80} in contents of {len(contents)} bytes")
    start, end = offsets
    shape = require_shape(name, about.get("shape"))
    dtype = BY_SAFETENSORS.get(code)
    type_name = dtype.name if dtype else code
    parameter = Parameter(name, type_name, shape, end - start, contents[start:end])
    if dtype is not None:
        expected = size_in_bytes(dtype, shape)
        require(
            expected == end - start,
            f"{parameter} takes {expected} bytes, but has {end - start} in the file",
        )
    return start, parameter


def _code(parameter: Parameter) -> str | None:
    """Return the format's code of the type; None if it has none, or cannot pack that many."""
    dtype = parameter.dtype
    if not parameter.type_name:
        return "U8"
    if dtype is None or math.prod(parameter.shape) * dtype.bits % 8:
        return None
    return dtype.safetensors


def _alignment(parameter: Parameter) -> int:
    """Return the largest power of two, up to `DATA_ALIGNMENT`, that divides the size."""
    size = parameter.nbytes or DATA_ALIGNMENT
    return min(size & -size, DATA_ALIGNMENT)
