"""A few cases of each suite, checked in the test run; and the tables are what the suites make."""

from __future__ import annotations

import pytest

from . import page, results

MODELS = (("bert", "static"), ("llama-mask", "dynamic"), ("t5", "static"), ("vit", "static"))

OPERATORS = (
    ("einsum", "float32 static"),
    ("nn.functional.scaled_dot_product_attention", "float32 static"),
    ("nn.functional.pad.reflect", "float32 static"),
    ("floor_divide", "int64 static"),
    ("logcumsumexp", "float32 static"),
    ("nn.functional.grid_sample", "float32 static"),
    ("renorm", "float32 static"),
    ("fft.rfft", "float32 static"),
    ("digamma", "float32 static"),
    ("linalg.solve_triangular", "float32 static"),
)


@pytest.mark.parametrize("key", MODELS, ids="/".join)
def test_models_of_the_table_are_still_right(key):
    pytest.importorskip("transformers")
    from .cases import model_cases

    _assert_ok(model_cases()[key])


@pytest.mark.parametrize("key", OPERATORS, ids="/".join)
def test_operators_of_the_table_are_still_right(key):
    pytest.importorskip("expecttest")
    from .cases import operator_cases

    _assert_ok(operator_cases()[key])


def _assert_ok(case):
    outcome = case()
    assert outcome.status == "ok", f"{outcome.stage}: {outcome.reason}"


@pytest.mark.parametrize("name", ["models", "ops"])
def test_no_case_of_the_tables_is_silently_wrong(name):
    table = results.read(results.FOLDER / f"{name}.csv")
    assert [key for key, outcome in table.items() if outcome.status == "wrong"] == []


def test_the_page_is_made_from_the_tables(tmp_path, monkeypatch):
    written = page.PAGE.read_text()
    monkeypatch.setattr(page, "PAGE", tmp_path / "coverage.md")
    page.write_page_from_tables()
    assert (tmp_path / "coverage.md").read_text() == written
