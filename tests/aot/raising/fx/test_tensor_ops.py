"""Sizes, elements, slices, updates and fills of procedures, against torch's own indexing."""

from __future__ import annotations

import pytest
import torch

from pelton.aot.spec.errors import UnsupportedOpError
from tests.aot.raising.texts import body, raised, run, targets_of

X = torch.arange(24.0).reshape(6, 4)


def i32(number: int) -> torch.Tensor:
    return torch.tensor(number, dtype=torch.int32)


def test_a_dynamic_size_is_read_and_a_fixed_one_is_known() -> None:
    text = body(
        """
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %rows = tensor.dim %x, %zero : tensor<?x4xf32>
        %columns = tensor.dim %x, %one : tensor<?x4xf32>
        return %rows, %columns : index, index
        """,
        "%x: tensor<?x4xf32>",
        "index, index",
    )
    assert [value.item() for value in run(text, X)] == [6, 4]
    assert targets_of(raised(text)).count("aten.sym_size.int") == 1


@pytest.mark.parametrize(("shape", "type_"), [((), "i8"), ((2,), "2xi8"), ((2, 1), "2x1xi8")])
def test_a_tensor_is_made_of_its_elements(shape: tuple[int, ...], type_: str) -> None:
    count = max(1, len(torch.zeros(shape).reshape(-1)))
    listed = ", ".join(["%a", "%b"][:count])
    text = body(
        f"%t = tensor.from_elements {listed} : tensor<{type_}> return %t : tensor<{type_}>",
        "%a: i8, %b: i8",
        f"tensor<{type_}>",
    )
    a, b = torch.tensor(-3, dtype=torch.int8), torch.tensor(5, dtype=torch.int8)
    (found,) = run(text, a, b)
    assert found.dtype is torch.int8
    assert found.shape == shape
    assert found.reshape(-1).tolist() == [-3, 5][:count]


def test_a_tensor_of_no_elements_is_made() -> None:
    text = body(
        "%t = tensor.from_elements : tensor<0x2xf32> return %t : tensor<0x2xf32>",
        "",
        "tensor<0x2xf32>",
    )
    (found,) = run(text)
    assert found.shape == (0, 2)
    assert found.dtype is torch.float32


def test_an_element_is_taken_at_places_known_before_and_at_the_call() -> None:
    text = body(
        """
        %two = arith.constant 2 : index
        %e = tensor.extract %x[%two, %n] : tensor<6x4xf32>
        return %e : f32
        """,
        "%x: tensor<6x4xf32>, %n: index",
        "f32",
    )
    assert [run(text, X, n)[0].item() for n in (0, 3)] == [8, 11]


def test_a_number_in_a_tensor_is_taken() -> None:
    text = body("%e = tensor.extract %x[] : tensor<i64> return %e : i64", "%x: tensor<i64>", "i64")
    assert run(text, torch.tensor(7))[0].item() == 7


SLICE = body(
    """
    %zero = arith.constant 0 : index
    %two = arith.constant 2 : index
    %four = arith.constant 4 : index
    %s = flow.tensor.slice %x[START, %zero for %two, %four] : tensor<6x4xf32> -> tensor<2x4xf32>
    return %s : tensor<2x4xf32>
    """,
    "%x: tensor<6x4xf32>, %n: i32",
    "tensor<2x4xf32>",
)


def test_a_slice_at_a_fixed_place() -> None:
    text = SLICE.replace("START", "%two")
    assert torch.equal(run(text, X, i32(0))[0], X[2:4])
    assert "aten.index_select.default" not in targets_of(raised(text))


@pytest.mark.parametrize("start", [0, 1, 4])
def test_a_slice_at_a_place_that_only_a_call_tells_has_a_known_size(start: int) -> None:
    text = SLICE.replace("START", "%at").replace(
        "%zero =", "%at = arith.index_cast %n : i32 to index %zero ="
    )
    assert torch.equal(run(text, X, i32(start))[0], X[start : start + 2])


@pytest.mark.parametrize("rows", [0, 1, 6])
def test_a_slice_of_a_length_that_only_a_call_tells(rows: int) -> None:
    text = body(
        """
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %two = arith.constant 2 : index
        %s = flow.tensor.slice %x[%zero, %one for %n, %two]
          : tensor<6x4xf32> -> tensor<?x2xf32>{%n}
        return %s : tensor<?x2xf32>
        """,
        "%x: tensor<6x4xf32>, %n: index",
        "tensor<?x2xf32>",
    )
    assert torch.equal(run(text, X, rows)[0], X[:rows, 1:3])


def test_a_slice_of_all_is_the_tensor() -> None:
    text = body(
        """
        %zero = arith.constant 0 : index
        %six = arith.constant 6 : index
        %four = arith.constant 4 : index
        %s = flow.tensor.slice %x[%zero, %zero for %six, %four]
          : tensor<6x4xf32> -> tensor<6x4xf32>
        return %s : tensor<6x4xf32>
        """,
        "%x: tensor<6x4xf32>",
        "tensor<6x4xf32>",
    )
    assert torch.equal(run(text, X)[0], X)
    assert targets_of(raised(text)) == ["aten.clone.default"]


def update(row: str, column: str) -> str:
    return body(
        f"""
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %at = arith.index_cast %n : i32 to index
        %t = flow.tensor.update %u, %x[{row}, {column}] : tensor<2x3xf32> -> %x as tensor<6x4xf32>
        return %t : tensor<6x4xf32>
        """,
        "%x: tensor<6x4xf32>, %u: tensor<2x3xf32>, %n: i32",
        "tensor<6x4xf32>",
    )


@pytest.mark.parametrize(
    ("row", "column", "n", "place"),
    [
        ("%zero", "%one", 0, (0, 1)),
        ("%at", "%one", 4, (4, 1)),
        ("%at", "%zero", 0, (0, 0)),
        ("%one", "%at", 1, (1, 1)),
        ("%at", "%at", 1, (1, 1)),
    ],
)
def test_a_box_is_replaced(row: str, column: str, n: int, place: tuple[int, int]) -> None:
    new, given = -torch.ones(2, 3), X.clone()
    (found,) = run(update(row, column), given, new, i32(n))
    expected = X.clone()
    expected[place[0] : place[0] + 2, place[1] : place[1] + 3] = new
    assert torch.equal(found, expected)
    assert torch.equal(given, X)  # an input is not written to


def test_an_update_of_all_is_the_update() -> None:
    text = body(
        """
        %zero = arith.constant 0 : index
        %t = flow.tensor.update %u, %x[%zero] : tensor<3xf32> -> %x as tensor<3xf32>
        return %t : tensor<3xf32>
        """,
        "%x: tensor<3xf32>, %u: tensor<3xf32>",
        "tensor<3xf32>",
    )
    assert run(text, torch.zeros(3), torch.ones(3))[0].tolist() == [1, 1, 1]
    assert targets_of(raised(text)) == ["aten.clone.default"]


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_a_length_is_counted_from_where_the_slice_starts(rows: int) -> None:
    text = body(
        """
        %s = tensor.extract_slice %x[2, 0] [%n, 4] [1, 1] : tensor<6x4xf32> to tensor<?x4xf32>
        return %s : tensor<?x4xf32>
        """,
        "%x: tensor<6x4xf32>, %n: index",
        "tensor<?x4xf32>",
    )
    assert torch.equal(run(text, X, rows)[0], X[2 : 2 + rows])


@pytest.mark.parametrize(("n", "start"), [(2, 0), (2, 1), (0, 1), (6, 0)])
def test_slices_of_the_tensor_dialect(n: int, start: int) -> None:
    text = body(
        """
        %s = tensor.extract_slice %x[%k, 1] [%n, 2] [1, 1] : tensor<?x4xf32> to tensor<?x2xf32>
        return %s : tensor<?x2xf32>
        """,
        "%x: tensor<?x4xf32>, %k: index, %n: index",
        "tensor<?x2xf32>",
    )
    assert torch.equal(run(text, X, start, n)[0], X[start : start + n, 1:3])


def test_a_slice_is_inserted_by_the_tensor_dialect() -> None:
    text = body(
        """
        %t = tensor.insert_slice %u into %x[%k, 1] [2, 3] [1, 1]
          : tensor<2x3xf32> into tensor<6x4xf32>
        return %t : tensor<6x4xf32>
        """,
        "%x: tensor<6x4xf32>, %u: tensor<2x3xf32>, %k: index",
        "tensor<6x4xf32>",
    )
    expected = X.clone()
    expected[3:5, 1:4] = -1
    assert torch.equal(run(text, X, -torch.ones(2, 3), 3)[0], expected)


@pytest.mark.parametrize(
    ("slice_", "type_", "message"),
    [
        ("[0, 0] [3, 4] [2, 1]", "3x4", "tensor.extract_slice with a step"),
        ("[1, 0] [1, 4] [1, 1]", "4", "tensor.extract_slice that drops dimensions"),
    ],
)
def test_slices_without_a_form_are_refused(slice_: str, type_: str, message: str) -> None:
    text = body(
        f"""
        %s = tensor.extract_slice %x{slice_} : tensor<6x4xf32> to tensor<{type_}xf32>
        return %s : tensor<{type_}xf32>
        """,
        "%x: tensor<6x4xf32>",
        f"tensor<{type_}xf32>",
    )
    with pytest.raises(UnsupportedOpError, match=message):
        raised(text)


@pytest.mark.parametrize(
    ("argument", "type_", "value"),
    [
        ("%v: f32", "f32", torch.tensor(0.5)),
        ("%v: i8", "i8", torch.tensor(-2, dtype=torch.int8)),
        ("%v: i64", "i64", 7),
        ("%v: i1", "i1", torch.tensor(True)),
    ],
    ids=["f32", "i8", "i64", "i1"],
)
@pytest.mark.parametrize("n", [0, 3])
def test_a_tensor_is_filled_with_a_number(argument: str, type_: str, value: object, n: int) -> None:
    text = body(
        f"%t = flow.tensor.splat %v : tensor<2x?x{type_}>{{%n}} return %t : tensor<2x?x{type_}>",
        f"{argument}, %n: index",
        f"tensor<2x?x{type_}>",
    )
    (found,) = run(text, value, n)
    assert torch.equal(found, torch.as_tensor(value).expand(2, n))


def test_an_empty_tensor_has_its_sizes_and_known_elements() -> None:
    text = body(
        "%t = flow.tensor.empty : tensor<?x2xi32>{%n} return %t : tensor<?x2xi32>",
        "%n: index",
        "tensor<?x2xi32>",
    )
    assert torch.equal(run(text, 3)[0], torch.zeros(3, 2, dtype=torch.int32))


def test_a_negative_size_is_refused_when_the_graph_runs() -> None:
    text = body(
        """
        %n = tensor.extract %k[] : tensor<i64>
        %m = arith.index_cast %n : i64 to index
        %t = flow.tensor.empty : tensor<?xi32>{%m}
        return %t : tensor<?xi32>
        """,
        "%k: tensor<i64>",
        "tensor<?xi32>",
    )
    assert run(text, torch.tensor(2))[0].tolist() == [0, 0]
    with pytest.raises(RuntimeError):
        run(text, torch.tensor(-1))


def test_a_reshape_with_a_dynamic_size() -> None:
    text = body(
        """
        %t = flow.tensor.reshape %x : tensor<6x4xf32> -> tensor<2x?x4xf32>{%n}
        return %t : tensor<2x?x4xf32>
        """,
        "%x: tensor<6x4xf32>, %n: index",
        "tensor<2x?x4xf32>",
    )
    assert torch.equal(run(text, X, 3)[0], X.reshape(2, 3, 4))


def test_bits_are_read_as_another_type() -> None:
    text = body(
        "%t = flow.tensor.bitcast %x : tensor<2xf32> -> tensor<2xi32> return %t : tensor<2xi32>",
        "%x: tensor<2xf32>",
        "tensor<2xi32>",
    )
    assert run(text, torch.tensor([1.0, -0.0]))[0].tolist() == [0x3F800000, -(2**31)]


def test_printing_is_an_effect_and_a_transfer_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    text = body(
        """
        flow.tensor.trace "x" = [%x : tensor<1xf32>]
        %t = flow.tensor.transfer %x : tensor<1xf32> to #hal.device.promise<@__device_1>
        return %t : tensor<1xf32>
        """,
        "%x: tensor<1xf32>",
        "tensor<1xf32>",
    )
    assert run(text, torch.tensor([2.0]))[0].tolist() == [2]
    assert capsys.readouterr().err == "=== x ===\ntensor([2.])\n"
    assert targets_of(raised(text, effects=False)) == ["aten.clone.default"]
