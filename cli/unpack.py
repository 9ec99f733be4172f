"""`pelton unpack`: the members of a TensorRT package as plain files, for other tools."""

from __future__ import annotations

import argparse

from pelton.runtime.artifacts.trtm import MANIFEST, open_trtm
from pelton.runtime.files import atomic_folder
from pelton.runtime.progress import stage

from .options import Subcommands
from .terminal import say


def add_parser(subparsers: Subcommands) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "unpack",
        help="a TensorRT package as plain files",
        description="Write the members of a .trtm package as files: engines as TensorRT wrote "
        "them, ONNX graphs, layers and state.",
    )
    parser.add_argument("package", metavar="FILE", help="a .trtm package")
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="a new folder")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the members of `args.package` into the folder `args.output`.

    Raises:
        ArtifactError: The package is damaged, or the folder is not new.
    """
    package = open_trtm(args.package)
    with stage(f"unpacking {args.package}"), atomic_folder(args.output) as folder:
        (folder / MANIFEST).write_text(package.manifest.to_json())
        for name in package.manifest.members:
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(package.read(name))
    say(f"{args.output}: {', '.join(sorted(package.manifest.members))}")
    return 0
