"""A few cases of each suite, checked in the test run; and the tables are what the suites make."""

from __future__ import annotations

import os
import signal

import pytest

from . import page, results
from .isolation import Outcome, in_children

MODELS = (
    ("bert", "static"), ("llama-mask", "dynamic"), ("qwen3_moe", "dynamic"), ("vit", "static"),
)  # fmt: skip

OPERATORS = (
    ("einsum", "float32", "static"),
    ("nn.functional.scaled_dot_product_attention", "float32", "static"),
    ("nn.functional.pad.reflect", "float32", "static"),
    ("floor_divide", "int64", "static"),
    ("logcumsumexp", "float32", "static"),
    ("nn.functional.grid_sample", "float32", "static"),
    ("renorm", "float32", "static"),
    ("fft.rfft", "float32", "static"),
    ("digamma", "float32", "static"),
    ("linalg.solve_triangular", "float32", "static"),
    ("linalg.svd", "float32", "static"),
    ("special.bessel_y1", "float32", "static"),
    ("softmax", "bfloat16", "onnx"),
)


@pytest.mark.parametrize(("name", "variant"), MODELS)
def test_models_of_the_table_are_still_right(name, variant):
    pytest.importorskip("transformers")
    from .cases import model_cases

    _assert_ok(model_cases()[name, "float32"], variant)


@pytest.mark.parametrize(("name", "dtype", "variant"), OPERATORS)
def test_operators_of_the_table_are_still_right(name, dtype, variant):
    pytest.importorskip("expecttest")
    from .cases import operator_cases

    _assert_ok(operator_cases()[name, dtype], variant)


def _assert_ok(case, variant):
    ((_, outcome),) = case([variant])
    assert outcome.status == "ok", f"{outcome.stage}: {outcome.reason}"


@pytest.mark.parametrize("name", ["models", "ops"])
def test_no_case_of_the_tables_is_silently_wrong(name):
    table = results.read(results.FOLDER / f"{name}.csv")
    wrong = [
        (line, variant)
        for line, outcomes in table.items()
        for variant, outcome in outcomes.items()
        if outcome.status == "wrong"
    ]
    assert wrong == []


def test_a_table_is_read_as_it_was_written(tmp_path):
    table = {
        ("add", "float32"): {"static": Outcome("ok"), "onnx": Outcome("refused", "export", "a: b")},
        ("sub", "bool"): {"dynamic": Outcome("timeout", "", "longer than 180 s")},
    }
    results.write(tmp_path / "table.csv", table, table)
    assert results.read(tmp_path / "table.csv") == table


def test_a_case_that_dies_costs_its_variant_alone():
    def case(variants):
        for variant in variants:
            if variant == "onnx":
                os.kill(os.getpid(), signal.SIGSEGV)
            yield variant, Outcome("ok")

    found = in_children(case, results.VARIANTS, 20.0)
    expected = ["crash" if name == "onnx" else "ok" for name in results.VARIANTS]
    assert [found[name].status for name in results.VARIANTS] == expected


def test_the_page_is_made_from_the_tables(tmp_path, monkeypatch):
    written = page.PAGE.read_text()
    monkeypatch.setattr(page, "PAGE", tmp_path / "coverage.md")
    page.write_page_from_tables()
    assert (tmp_path / "coverage.md").read_text() == written
