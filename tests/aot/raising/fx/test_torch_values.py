"""Constants, lists and conversions of the torch dialect."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.aot.raising.texts import body, raised, raiser_of, run, same, targets_of


def constants(text: str) -> list[Any]:
    """Return what the operations of a block were raised to, without their graph."""
    raiser = raiser_of(body(text + " return"))
    block = raiser.source.function("main").regions[0].blocks[0]
    raiser.run(block)
    return [raiser.value(result) for view in block.operations for result in view.operation.results]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%0 = torch.constant.int -3", -3), ("%0 = torch.constant.float 2.5", 2.5),
        ("%0 = torch.constant.bool false", False), ("%0 = torch.constant.bool true", True),
        ('%0 = torch.constant.str "a\\"b"', 'a"b'), ("%0 = torch.constant.none", None),
        ('%0 = torch.constant.device "cuda:1"', torch.device("cpu")),
    ],
)  # fmt: skip
def test_constants_are_pythons(text: str, expected: object) -> None:
    (found,) = constants(text)
    assert found == expected
    assert type(found) is type(expected)


def test_lists_and_tuples_are_of_what_they_are_made_of() -> None:
    found = constants("""
    %a = torch.constant.int 1
    %b = torch.constant.none
    %empty = torch.prim.ListConstruct : () -> !torch.list<int>
    %list = torch.prim.ListConstruct %a, %a : (!torch.int, !torch.int) -> !torch.list<int>
    %tuple = torch.prim.TupleConstruct %b, %list
      : !torch.none, !torch.list<int> -> !torch.tuple<none, list<int>>
    %x, %y = torch.prim.ListUnpack %list : !torch.list<int> -> !torch.int, !torch.int
    %p, %q = torch.prim.TupleUnpack %tuple
      : !torch.tuple<none, list<int>> -> !torch.none, !torch.list<int>
    %item = torch.aten.__getitem__.t %list, %a : !torch.list<int>, !torch.int -> !torch.int
    """)
    assert found == [1, None, [], [1, 1], [None, [1, 1]], 1, 1, None, [1, 1], 1]


@pytest.mark.parametrize(
    ("literal", "type_", "expected", "dtype"),
    [
        ("dense<[1.0, -2.0]> : tensor<2xf32>", "[2],f32", [1.0, -2.0], torch.float32),
        ("dense<3> : tensor<2x1xsi64>", "[2,1],si64", [[3], [3]], torch.int64),
        ("dense<255> : tensor<ui8>", "[],ui8", 255, torch.uint8),
        ("dense<true> : tensor<i1>", "[],i1", True, torch.bool),
        ("dense<> : tensor<0xf32>", "[0],f32", [], torch.float32),
    ],
)
def test_literals_are_tensors(
    literal: str, type_: str, expected: object, dtype: torch.dtype
) -> None:
    text = body(
        f"%0 = torch.vtensor.literal({literal}) : !torch.vtensor<{type_}>"
        f" return %0 : !torch.vtensor<{type_}>",
        "",
        f"!torch.vtensor<{type_}>",
    )
    assert same(run(text)[0], expected, dtype)


def test_a_list_that_an_operator_gives_is_unpacked() -> None:
    text = body(
        """
        %one = torch.constant.int 1
        %zero = torch.constant.int 0
        %list = torch.aten.split.Tensor %x, %one, %zero
          : !torch.vtensor<[2],f32>, !torch.int, !torch.int -> !torch.list<vtensor<[1],f32>>
        %a, %b = torch.prim.ListUnpack %list
          : !torch.list<vtensor<[1],f32>> -> !torch.vtensor<[1],f32>, !torch.vtensor<[1],f32>
        %c = torch.aten.__getitem__.t %list, %one
          : !torch.list<vtensor<[1],f32>>, !torch.int -> !torch.vtensor<[1],f32>
        return %b, %a, %c
          : !torch.vtensor<[1],f32>, !torch.vtensor<[1],f32>, !torch.vtensor<[1],f32>
        """,
        "%x: !torch.vtensor<[2],f32>",
        "!torch.vtensor<[1],f32>, !torch.vtensor<[1],f32>, !torch.vtensor<[1],f32>",
    )
    assert [value.item() for value in run(text, torch.tensor([5.0, 6.0]))] == [6, 5, 6]


def test_a_type_without_a_sign_has_the_sign_of_torchs() -> None:
    text = body(
        """
        %b = torch_c.to_builtin_tensor %x : !torch.vtensor<[2],ui8> -> tensor<2xi8>
        %c = torch_c.from_builtin_tensor %b : tensor<2xi8> -> !torch.vtensor<[2],si8>
        %d = torch_c.from_builtin_tensor %b : tensor<2xi8> -> !torch.vtensor<[2],ui8>
        %none = torch.constant.none
        %no = torch.constant.bool false
        %f32 = torch.constant.int 6
        %e = torch.aten.to.dtype %c, %f32, %no, %no, %none : !torch.vtensor<[2],si8>, !torch.int,
          !torch.bool, !torch.bool, !torch.none -> !torch.vtensor<[2],f32>
        %f = torch.aten.to.dtype %d, %f32, %no, %no, %none : !torch.vtensor<[2],ui8>, !torch.int,
          !torch.bool, !torch.bool, !torch.none -> !torch.vtensor<[2],f32>
        return %e, %f : !torch.vtensor<[2],f32>, !torch.vtensor<[2],f32>
        """,
        "%x: !torch.vtensor<[2],ui8>",
        "!torch.vtensor<[2],f32>, !torch.vtensor<[2],f32>",
    )
    signed, unsigned = run(text, torch.tensor([255, 1], dtype=torch.uint8))
    assert (signed.tolist(), unsigned.tolist()) == ([-1, 1], [255, 1])


NUMBERS = body(
    """
    %a = torch_c.to_i64 %i
    %b = torch_c.to_f64 %f
    %c = torch_c.to_i1 %p
    %d = arith.addi %a, %a : i64
    %e = arith.addf %b, %b : f64
    %g = torch_c.from_i64 %d
    %h = torch_c.from_f64 %e
    %k = torch_c.from_i1 %c
    %n = torch.prim.NumToTensor.Scalar %g : !torch.int -> !torch.vtensor<[],si64>
    return %g, %h, %k, %n : !torch.int, !torch.float, !torch.bool, !torch.vtensor<[],si64>
    """,
    "%i: !torch.int, %f: !torch.float, %p: !torch.bool",
    "!torch.int, !torch.float, !torch.bool, !torch.vtensor<[],si64>",
)


def test_numbers_go_between_the_dialects_and_back() -> None:
    values = run(NUMBERS, 3, torch.tensor(0.25, dtype=torch.float64), torch.tensor(True))
    expected = [(6, torch.int64), (0.5, torch.float64), (True, torch.bool), (6, torch.int64)]
    assert all(same(value, *wanted) for value, wanted in zip(values, expected, strict=True))


def test_what_says_only_something_of_types_leaves_no_operator() -> None:
    text = body(
        """
        %a = torch.copy.to_tensor %x : !torch.tensor<[2],f32>
        %b = torch.copy.to_vtensor %a : !torch.vtensor<[2],f32>
        %c = torch.tensor_static_info_cast %b : !torch.vtensor<[2],f32> to !torch.vtensor<[?],f32>
        %s = torch.symbolic_int "s0" {min_val = 0, max_val = 9} : !torch.int
        torch.bind_symbolic_shape %c, [%s], affine_map<()[s0] -> (s0)> : !torch.vtensor<[?],f32>
        return %c : !torch.vtensor<[?],f32>
        """,
        "%x: !torch.vtensor<[2],f32>",
        "!torch.vtensor<[?],f32>",
    )
    assert targets_of(raised(text)) == ["aten.clone.default"]
    assert run(text, torch.tensor([1.0, 2.0]))[0].tolist() == [1, 2]
