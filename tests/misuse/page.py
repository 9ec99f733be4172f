"""Makes `docs/errors.md` from the classes of errors and the table of wrong uses.

`python -m tests.misuse.page` writes it; a test checks that it is current.
"""

from __future__ import annotations

import inspect
import re
import tempfile
import warnings
from pathlib import Path

import pelton.aot  # noqa: F401 - defines errors of its own
from pelton.runtime.errors import PeltonError

from .cases import MISUSES, Misuse

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"

_HEAD = """# Errors

Every error of Pelton is a `PeltonError`, and also the builtin that fits. A message says which
object, what was expected, what was given, and what to do; where it is about a line of yours, it
names that line (`.location`). Nothing is written when an error comes: files appear whole or not at
all. This page is made from the code by `python -m tests.misuse.page`.

In the examples, `folder` is a `Path`, `double` is a function of a tensor, `ROWS` and `FOUR` are

```text
ROWS = aot.InputInfo((aot.NamedDimension("rows", 1, 2, 8), 4), torch.float32)
FOUR = aot.InputInfo((4,), torch.float32)
```

`loaded(folder, function, *specs)` exports, compiles and loads a function (`double` of `ROWS`), and
`external(folder)` compiles a linear layer whose weights come from an archive.

"""


def page() -> str:
    """Return the text of the page."""
    return _HEAD + "\n".join(_section(error) for error in _classes(PeltonError))


def _classes(error: type[PeltonError]) -> list[type[PeltonError]]:
    found = []
    for subclass in error.__subclasses__():
        if subclass.__module__.startswith("pelton."):
            found += [subclass, *_classes(subclass)]
    return found


def _section(error: type[PeltonError]) -> str:
    bases = " and ".join(f"`{base.__name__}`" for base in error.__bases__)
    meaning = (inspect.getdoc(error) or "").partition("\n\n")[0]
    text = f"## {error.__name__}\n\nIs a {bases}. {' '.join(meaning.split())}\n"
    for case in MISUSES:
        if case.error is error and case.fix:
            text += f"\n{_example(case)}"
    return text


def _example(case: Misuse) -> str:
    title = case.name.replace("_", " ").capitalize()
    return f"**{title}.** {case.fix}\n\n```text\n{_source(case)}\n\n{_message(case)}\n```\n"


def _source(case: Misuse) -> str:
    return re.sub(r"  # type: ignore\[[\w-]+\]", "", case.source)


def _message(case: Misuse) -> str:
    """Return what the error says, without the paths and numbers of this machine."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            case.action(Path(folder))
        except PeltonError as error:
            text = str(error).replace(f"{folder}/", "")
            text = re.sub(r"/\S+/cases\.py:\d+", "program.py:12", text)
            text = re.sub(r"'/\S+/iree-compile --help'", "'iree-compile --help'", text)
            text = re.sub(r"/tmp/pelton-reproducer-\w+", "/tmp/pelton-reproducer", text)
            text = re.sub(r"\d+\.\d+e?-?\d*(?=[,)])", "…", text)
            return f"{type(error).__name__}: {text}"
    raise AssertionError(f"{case.name} raises nothing")


if __name__ == "__main__":
    PAGE.write_text(page())
