"""`pelton triton-repo`: a model repository for NVIDIA's inference server from a package."""

from __future__ import annotations

import argparse
from pathlib import Path
from urllib.parse import quote

from pelton.runtime.artifacts.entry_points import EntryPoint
from pelton.runtime.artifacts.trtm import Package, open_trtm
from pelton.runtime.errors import ArtifactError
from pelton.runtime.files import atomic_folder

from .options import Subcommands
from .terminal import say
from .triton_config import BACKENDS, Backend, ModelConfig, model_config


def add_parser(subparsers: Subcommands) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "triton-repo",
        help="a model repository for NVIDIA's inference server",
        description="Write a model with its config.pbtxt for each entry point of a .trtm package. "
        "Requests are batched where the first dimension of all inputs and outputs is one and the "
        "same dynamic dimension: the rows of a batch must not depend on each other.",
    )
    parser.add_argument("package", metavar="FILE", help="a .trtm package")
    parser.add_argument(
        "-o", "--output", required=True, metavar="FOLDER", help="the repository, which may exist"
    )
    parser.add_argument(
        "--name", help="of the model, or what the names of several begin with (default: the file's)"
    )
    parser.add_argument(
        "--backend",
        choices=list(BACKENDS),
        default="tensorrt",
        help="run the engines (the default), or the reference graphs by onnxruntime",
    )
    parser.add_argument(
        "--no-batching",
        dest="batching",
        action="store_false",
        help="do not let the server put requests together",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write a model for each entry point of `args.package` into `args.output`.

    Raises:
        ArtifactError: The package is damaged, an entry point cannot be served, or there is a model
            of that name already.
    """
    package = open_trtm(args.package)
    functions = package.manifest.functions
    prefix = quote(args.name or Path(args.package).stem, safe="")
    models = {
        prefix if len(functions) == 1 else f"{prefix}_{quote(f.name, safe='')}": f
        for f in functions
    }
    state = package.initial_state
    configs = {
        name: model_config(
            name, package.manifest, f, state, backend=args.backend, batching=args.batching
        )
        for name, f in models.items()
    }
    repository = Path(args.output)
    existing = [name for name in models if (repository / name).exists()]
    if existing:
        raise ArtifactError(
            f"{repository} has a model {existing[0]} already; remove it, or give another --name"
        )
    if not repository.parent.is_dir():
        raise ArtifactError(f"cannot write {repository}: folder {repository.parent} is missing")
    repository.mkdir(exist_ok=True)
    for name, function in models.items():
        _write(package, function, configs[name], args.backend, repository / name)
    say(f"{repository}: {', '.join(models)}")
    return 0


def _write(
    package: Package, function: EntryPoint, config: ModelConfig, backend: Backend, path: Path
) -> None:
    with atomic_folder(path) as folder:
        (folder / "config.pbtxt").write_text(config.text, encoding="utf-8")
        version = folder / "1"
        version.mkdir()
        for role, file in BACKENDS[backend].files.items():
            (version / file).write_bytes(package.read(function.members[role]))
        data = function.members.get("reference_data")
        if backend == "onnxruntime" and data is not None:
            (version / Path(data).name).write_bytes(package.read(data))
        if config.initial_state:
            (folder / "initial_state").mkdir()
            for name, contents in config.initial_state.items():
                (folder / "initial_state" / name).write_bytes(contents)
