"""What is rewritten in a module, in the torch dialect, before IREE compiles it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from iree.compiler.ir import Operation
from torch import Tensor
from torch.nn import functional as F

from pelton import aot
from pelton.aot.targets.iree.faults.group_norm import decompose_group_norm
from pelton.aot.targets.iree.faults.half_attention import upcast_attention
from pelton.aot.targets.iree.faults.nan_propagation import propagate_nans
from pelton.aot.targets.iree.faults.range_reduction import replace_inexact_functions
from pelton.aot.targets.iree.faults.splat_constants import outline_splat_constants
from tests.programs import check_text

ROWS = aot.NamedDimension("rows", 2, 4, 16)


def tensor(*shape: Any, dtype: torch.dtype = torch.float32) -> aot.InputInfo:
    return aot.InputInfo(shape, dtype)


def rewritten(rewrite: Callable[[Operation], None], function: Any, *args: Any) -> str:
    """Return the text of a program after a rewrite; the module is still valid."""
    module_op = aot.export(function, args=args).mlir_module
    rewrite(module_op)
    module_op.verify()
    return str(module_op)


def unchanged(rewrite: Callable[[Operation], None], function: Any, *args: Any) -> bool:
    """Tell whether a rewrite leaves a program as it is."""
    return rewritten(rewrite, function, *args) == str(aot.export(function, args=args).mlir_module)


# Constants


def test_a_splat_becomes_a_global_that_is_loaded() -> None:
    check_text(
        rewritten(outline_splat_constants, lambda x: x + torch.full((3,), 2.5), tensor(3)),
        """
        CHECK: util.global private @[[NAME:.*]] = dense<2.500000e+00> : tensor<3xf32>
        CHECK: %[[LOADED:.*]] = util.global.load immutable @[[NAME]] : tensor<3xf32>
        CHECK-NEXT: %[[VALUE:.*]] = torch_c.from_builtin_tensor %[[LOADED]] : tensor<3xf32> ->
        CHECK-NOT: torch.aten.full
        CHECK: torch.aten.add.Tensor %arg0, %[[VALUE]]
        """,
    )


def test_equal_constants_are_one_global() -> None:
    text = rewritten(
        outline_splat_constants,
        lambda x: (x + torch.ones(2, 3), x - torch.ones(2, 3), x * torch.zeros(3)),
        tensor(3),
    )
    check_text(
        text,
        """
        CHECK-DAG: util.global private @{{.*}} = dense<1.000000e+00> : tensor<2x3xf32>
        CHECK-DAG: util.global private @{{.*}} = dense<0.000000e+00> : tensor<3xf32>
        """,
    )
    assert text.count("util.global private") == 2
    assert text.count("util.global.load") == 3


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (torch.int64, "dense<-3> : tensor<2xi64>"),
        (torch.int8, "dense<-3> : tensor<2xi8>"),
        (torch.float64, "dense<-3.000000e+00> : tensor<2xf64>"),
        (torch.float16, "dense<-3.000000e+00> : tensor<2xf16>"),
    ],
)
def test_constants_of_all_types_have_builtin_ones(dtype: torch.dtype, value: str) -> None:
    check_text(
        rewritten(
            outline_splat_constants, lambda x: (x, torch.full((2,), -3, dtype=dtype)), tensor(2)
        ),
        f"CHECK: util.global private @{{{{.*}}}} = {value}",
    )


def test_large_constants_and_those_of_dynamic_size_stay() -> None:
    large = torch.arange(65.0)
    assert unchanged(outline_splat_constants, lambda x: x + large, tensor(1))
    assert unchanged(
        outline_splat_constants, lambda x: torch.ones(x.shape[0], 2) + x, tensor(ROWS, 2)
    )


def test_numbers_are_no_constants() -> None:
    assert unchanged(outline_splat_constants, lambda x: x * 2 + 1.5, tensor(3))


# NaN


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: x.clamp(-1, 1), "clamp"),
        (lambda x: torch.maximum(x, x * 2), "maximum"),
        (lambda x: torch.minimum(x, x * 2), "minimum"),
        (lambda x: F.threshold(x, 0.5, 2.0), "threshold"),
    ],
    ids=["clamp", "maximum", "minimum", "threshold"],
)
def test_the_first_operand_is_the_result_where_it_is_nan(
    function: Callable[[Tensor], Tensor], name: str
) -> None:
    check_text(
        rewritten(propagate_nans, function, tensor(3)),
        f"""
        CHECK: %[[RESULT:.*]] = torch.aten.{name} %arg0
        CHECK-NEXT: %[[NAN:.*]] = torch.aten.isnan %arg0 {{{{.*}}}} -> !torch.vtensor<[3],i1>
        CHECK-NEXT: %[[KEPT:.*]] = torch.aten.where.self %[[NAN]], %arg0, %[[RESULT]]
        CHECK: return %[[KEPT]]
        """,
    )


def test_the_place_of_the_largest_is_that_of_the_first_nan() -> None:
    check_text(
        rewritten(propagate_nans, lambda x: x.argmax(1), tensor(2, 3)),
        """
        CHECK: %[[PLACE:.*]] = torch.aten.argmax %arg0, %[[DIM:.*]], %[[KEEP:.*]] :
        CHECK: %[[NAN:.*]] = torch.aten.isnan %arg0
        CHECK: %[[ANY:.*]] = torch.aten.any.dim %[[NAN]], %[[DIM]], %[[KEEP]]
        CHECK: %[[INTEGER:.*]] = torch.prims.convert_element_type %[[NAN]], %{{.*}} -> {{.*}}si32>
        CHECK: %[[FIRST:.*]] = torch.aten.argmax %[[INTEGER]], %[[DIM]], %[[KEEP]]
        CHECK: %[[RESULT:.*]] = torch.aten.where.self %[[ANY]], %[[FIRST]], %[[PLACE]]
        CHECK: return %[[RESULT]]
        """,
    )


def test_of_two_results_the_place_is_chosen() -> None:
    check_text(
        rewritten(propagate_nans, lambda x: x.max(1), tensor(2, 3)),
        """
        CHECK: %values, %indices = torch.aten.max.dim %arg0
        CHECK: %[[PLACE:.*]] = torch.aten.where.self %{{.*}}, %{{.*}}, %indices
        CHECK: return %values, %[[PLACE]]
        """,
    )


def test_a_power_of_minus_infinity_is_that_of_infinity() -> None:
    check_text(
        rewritten(propagate_nans, lambda x: x**1.5, tensor(3)),
        """
        CHECK: %[[END:.*]] = torch.constant.float 0xFFF0000000000000
        CHECK: %[[IS_END:.*]] = torch.aten.eq.Scalar %arg0, %[[END]]
        CHECK: %[[OPPOSITE:.*]] = torch.aten.mul.Scalar %arg0
        CHECK: %[[BASE:.*]] = torch.aten.where.self %[[IS_END]], %[[OPPOSITE]], %arg0
        CHECK: torch.aten.pow.Tensor_Scalar %[[BASE]]
        """,
    )


def test_integers_whole_powers_and_other_operators_stay() -> None:
    assert unchanged(propagate_nans, lambda n: n.clamp(0, 3), tensor(3, dtype=torch.int64))
    assert unchanged(propagate_nans, lambda x: (x**2, x**3.0, x.exp()), tensor(3))


# Functions


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_are_reduced_in_float64(name: str) -> None:
    text = rewritten(replace_inexact_functions, lambda x: getattr(x, name)(), tensor(3))
    check_text(
        text,
        """
        CHECK: %[[WIDE:.*]] = torch.prims.convert_element_type %arg0, %int7
        CHECK-SAME: !torch.vtensor<[3],f64>
        CHECK: torch.constant.float 0.15915
        CHECK: torch.aten.mul.Scalar %[[WIDE]]
        CHECK-COUNT-7: torch.aten.round
        CHECK: torch.aten.sin %{{.*}} : !torch.vtensor<[3],f32>
        CHECK: return
        """,
    )
    assert f"torch.aten.{name} %arg0" not in text


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_angles_of_narrow_types_are_converted_back(dtype: torch.dtype) -> None:
    narrow = {torch.float16: "!torch.vtensor<[3],f16>", torch.bfloat16: "!torch.vtensor<[3],bf16>"}[
        dtype
    ]
    check_text(
        rewritten(replace_inexact_functions, torch.sin, tensor(3, dtype=dtype)),
        f"""
        CHECK: torch.prims.convert_element_type %arg0, %int7
        CHECK: torch.aten.sin
        CHECK: %[[NARROW:.*]] = torch.prims.convert_element_type {{{{.*}}}} -> {narrow}
        CHECK-NEXT: return %[[NARROW]] : {narrow}
        """,
    )


def test_gelu_of_the_tanh_form_is_written_out() -> None:
    text = rewritten(replace_inexact_functions, lambda x: F.gelu(x, approximate="tanh"), tensor(3))
    check_text(
        text,
        """
        CHECK: torch.constant.float 4.471500e-02
        CHECK: torch.constant.float 0.79788
        CHECK: torch.aten.tanh
        CHECK-NOT: torch.aten.gelu
        CHECK: return
        """,
    )


def test_exact_functions_and_float64_stay() -> None:
    assert unchanged(replace_inexact_functions, lambda x: (F.gelu(x), x.tanh(), x.exp()), tensor(3))
    assert unchanged(replace_inexact_functions, torch.sin, tensor(3, dtype=torch.float64))


# Attention and norms


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_attention_of_narrow_types_is_computed_in_float32(dtype: torch.dtype) -> None:
    element = {torch.float16: "f16", torch.bfloat16: "bf16"}[dtype]
    value, mask = tensor(1, 2, 4, 8, dtype=dtype), tensor(4, 4, dtype=torch.bool)
    check_text(
        rewritten(
            upcast_attention,
            lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, mask),
            value,
            value,
            value,
            mask,
        ),
        f"""
        CHECK: %[[Q:.*]] = torch.prims.convert_element_type {{{{.*}}}} -> {{{{.*}}}}[1,2,4,8],f32>
        CHECK: %[[K:.*]] = torch.prims.convert_element_type {{{{.*}}}} -> {{{{.*}}}}[1,2,4,8],f32>
        CHECK: %[[V:.*]] = torch.prims.convert_element_type {{{{.*}}}} -> {{{{.*}}}}[1,2,4,8],f32>
        CHECK: %[[M:.*]] = torch.prims.convert_element_type {{{{.*}}}} -> {{{{.*}}}}[1,1,4,4],f32>
        CHECK: %[[WIDE:.*]] = torch.aten.scaled_dot_product_attention %[[Q]], %[[K]], %[[V]], %[[M]]
        CHECK-SAME: -> !torch.vtensor<[1,2,4,8],f32>
        CHECK: torch.prims.convert_element_type %[[WIDE]], {{{{.*}}}} ->
        CHECK-SAME: !torch.vtensor<[1,2,4,8],{element}>
        """,
    )


def test_attention_in_float32_stays() -> None:
    value = tensor(1, 2, ROWS, 8)
    attend = F.scaled_dot_product_attention
    assert unchanged(upcast_attention, lambda q, k, v: attend(q, k, v), value, value, value)


def test_a_group_norm_is_written_out_in_float32() -> None:
    batch = aot.NamedDimension("batch", 1, 2, 4)
    text = rewritten(
        decompose_group_norm,
        lambda x, w, b: F.group_norm(x, 2, w, b),
        tensor(batch, 6, 5, 5),
        tensor(6),
        tensor(6),
    )
    check_text(
        text,
        """
        CHECK: %[[PARTS:.*]] = torch.aten.unflatten.int %arg0, {{.*}} ->
        CHECK-SAME: !torch.vtensor<[?,2,3,5,5],f32>
        CHECK: %[[MEAN:.*]] = torch.aten.mean.dim %[[PARTS]], {{.*}} ->
        CHECK-SAME: !torch.vtensor<[?,2,1,1,1],f32>
        CHECK: %[[DISTANCES:.*]] = torch.aten.sub.Tensor %[[PARTS]], %[[MEAN]]
        CHECK: %[[SQUARES:.*]] = torch.aten.mul.Tensor %[[DISTANCES]], %[[DISTANCES]]
        CHECK: torch.aten.mean.dim %[[SQUARES]]
        CHECK: torch.aten.rsqrt
        CHECK: torch.aten.flatten.using_ints {{.*}} -> !torch.vtensor<[?,6,5,5],f32>
        CHECK: torch.aten.mul.Tensor
        CHECK: torch.aten.add.Tensor
        CHECK-NOT: torch.aten.group_norm
        CHECK: return
        """,
    )


def test_group_norms_of_other_types_stay() -> None:
    assert unchanged(
        decompose_group_norm,
        lambda x: F.group_norm(x, 2),
        tensor(1, 4, 3, dtype=torch.float64),
    )
