"""What each change of a program between IREE's phases writes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from iree.compiler.ir import Context, Module, Operation

from pelton.codegen.faults.const_eval_barriers import insert_const_eval_barriers
from pelton.codegen.faults.conv_tiles import override_conv_lowering_config
from pelton.codegen.faults.data_tiling import mark_static_matmuls
from pelton.codegen.faults.invariant_reductions import materialize_invariant_reduction_inputs
from pelton.codegen.faults.padded_convolutions import decompose_dynamic_pads
from pelton.codegen.faults.workload_ordinals import fix_workload_ordinals
from tests.programs import check_text


def changed(change: Callable[[Operation], None], text: str) -> str:
    """Return the text of a module after a change; it is still valid."""
    with Context():
        module_op = Module.parse(text).operation
        change(module_op)
        assert module_op.verify()
        return str(module_op)


def unchanged(change: Callable[[Operation], None], text: str) -> bool:
    return changed(change, text) == changed(lambda module_op: None, text)


# Barriers before reductions of constants


def sum_of(elements: str, result: str = "tensor<4xi64>") -> str:
    """Return a module that sums the rows of elements."""
    return f"""
        func.func @main(%given: tensor<4x6xi64>) -> {result} {{
          %one = arith.constant dense<1> : tensor<4x6xi64>
          {elements}
          %zero = arith.constant 0 : i64
          %empty = tensor.empty() : {result}
          %start = linalg.fill ins(%zero : i64) outs(%empty : {result}) -> {result}
          %sum = linalg.generic {{
            indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
            iterator_types = ["parallel", "reduction"]
          }} ins(%elements : tensor<4x6xi64>) outs(%start : {result}) {{
          ^bb0(%in: i64, %out: i64):
            %added = arith.addi %in, %out : i64
            linalg.yield %added : i64
          }} -> {result}
          return %sum : {result}
        }}
    """


def test_a_sum_of_a_constant_reads_behind_a_barrier() -> None:
    check_text(
        changed(
            insert_const_eval_barriers,
            sum_of("%elements = arith.addi %one, %one : tensor<4x6xi64>"),
        ),
        """
        CHECK: %[[ELEMENTS:.*]] = arith.addi
        CHECK: %[[START:.*]] = linalg.fill
        CHECK-NEXT: %[[HIDDEN:.*]] = util.optimization_barrier %[[ELEMENTS]] : tensor<4x6xi64>
        CHECK-NEXT: linalg.generic
        CHECK-SAME: ins(%[[HIDDEN]] : tensor<4x6xi64>) outs(%[[START]] : tensor<4xi64>)
        """,
    )


def test_a_difference_of_the_same_is_a_constant() -> None:
    text = sum_of("%elements = arith.subi %given, %given : tensor<4x6xi64>")
    check_text(changed(insert_const_eval_barriers, text), "CHECK: util.optimization_barrier")


def test_a_sum_of_what_is_given_has_no_barrier() -> None:
    text = sum_of("%elements = arith.addi %given, %one : tensor<4x6xi64>")
    assert unchanged(insert_const_eval_barriers, text)


# Reductions that read their number from a tensor

REPEATED = """
func.func @main(%x: tensor<4x?xf32>, %y: tensor<4xf32>, %number: f32) -> tensor<4xf32> {
  %0 = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%x : tensor<4x?xf32>) outs(%y : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.addf %out, NUMBER : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def test_a_number_that_no_element_changes_is_read_from_a_filled_tensor() -> None:
    check_text(
        changed(materialize_invariant_reduction_inputs, REPEATED.replace("NUMBER", "%number")),
        """
        CHECK: %[[SIZE:.*]] = tensor.dim %arg0, %c1 : tensor<4x?xf32>
        CHECK: %[[EMPTY:.*]] = tensor.empty(%[[SIZE]]) : tensor<?xf32>
        CHECK: %[[FILLED:.*]] = linalg.fill ins(%arg2 : f32) outs(%[[EMPTY]] : tensor<?xf32>)
        CHECK: linalg.generic
        CHECK-SAME: iterator_types = ["parallel", "reduction"]
        CHECK-SAME: ins(%[[FILLED]], %arg0 : tensor<?xf32>, tensor<4x?xf32>) outs(%arg1
        CHECK-NEXT: ^bb0(%[[NUMBER:.*]]: f32, %[[IN:.*]]: f32, %[[OUT:.*]]: f32):
        CHECK-NEXT: arith.addf %[[OUT]], %[[NUMBER]] : f32
        """,
    )


def test_a_sum_of_elements_stays() -> None:
    assert unchanged(materialize_invariant_reduction_inputs, REPEATED.replace("NUMBER", "%in"))


def test_a_largest_of_a_number_stays() -> None:
    text = REPEATED.replace("arith.addf", "arith.maximumf").replace("NUMBER", "%number")
    assert unchanged(materialize_invariant_reduction_inputs, text)


# Pads as slices

PAD = """
func.func @main(%x: tensor<?x2x4xf32>) -> tensor<?x2x7xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.pad %x low[0, 0, 1] high[0, 0, 2] {
  ^bb0(%a: index, %b: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<?x2x4xf32> to tensor<?x2x7xf32>
  return %0 : tensor<?x2x7xf32>
}
"""


def test_a_pad_of_a_dynamic_size_is_a_slice_of_a_filled_tensor() -> None:
    check_text(
        changed(decompose_dynamic_pads, PAD),
        """
        CHECK: %[[ROWS:.*]] = tensor.dim %arg0, %c0 : tensor<?x2x4xf32>
        CHECK: %[[PADDED:.*]] = arith.addi %[[ROWS]], %c0
        CHECK: %[[EMPTY:.*]] = tensor.empty(%[[PADDED]]) : tensor<?x2x7xf32>
        CHECK: %[[FILLED:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[EMPTY]]
        CHECK: %[[RESULT:.*]] = tensor.insert_slice %arg0 into %[[FILLED]][0, 0, 1]
        CHECK-SAME: [%[[ROWS]], 2, 4] [1, 1, 1] : tensor<?x2x4xf32> into tensor<?x2x7xf32>
        CHECK: return %[[RESULT]]
        CHECK-NOT: tensor.pad
        """,
    )


def test_a_pad_of_static_sizes_stays() -> None:
    assert unchanged(decompose_dynamic_pads, PAD.replace("?", "3"))


# Products whose data are tiled

PRODUCT = """
func.func @main(%a: tensor<?xKxf32>, %b: tensor<Kx8xf32>, %c: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<?xKxf32>, tensor<Kx8xf32>) outs(%c : tensor<?x8xf32>)
    -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
"""


def test_a_product_over_a_static_size_is_marked() -> None:
    check_text(
        changed(mark_static_matmuls, PRODUCT.replace("K", "16")),
        "CHECK: linalg.matmul {iree.opt.data_tiling} ins(%arg0, %arg1",
    )


def test_a_product_over_a_dynamic_size_is_not() -> None:
    assert unchanged(mark_static_matmuls, PRODUCT.replace("K", "?"))


def test_of_a_transposed_operand_the_summed_size_is_the_first() -> None:
    turned = """
        func.func @main(%a: tensor<16x?xf32>, %b: tensor<16x8xf32>, %c: tensor<?x8xf32>)
            -> tensor<?x8xf32> {
          %0 = linalg.matmul
            indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                             affine_map<(m, n, k) -> (m, n)>]
            ins(%a, %b : tensor<16x?xf32>, tensor<16x8xf32>) outs(%c : tensor<?x8xf32>)
            -> tensor<?x8xf32>
          return %0 : tensor<?x8xf32>
        }
    """
    check_text(changed(mark_static_matmuls, turned), "CHECK: iree.opt.data_tiling")


# Tiles of convolutions

CONVOLUTION = """
#config = #iree_cpu.lowering_config<distribution = [0, 4, 4, 32, 0, 0, 0],
  vector_common_parallel = [1, 1, 4, 4, 0, 0, 0], vector_reduction = [0, 0, 0, 0, 1, 1, 4]>
#info = #iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<ConvTileAndDecomposeExpert>>
func.func @main(%x: tensor<1x?x?x8xf32>, %w: tensor<3x3x8x64xf32>, %y: tensor<1x?xWIDTHx64xf32>)
    -> tensor<1x?xWIDTHx64xf32> attributes {translation_info = #info} {
  %0 = linalg.generic {
    indexing_maps = [affine_map<(n, h, w, c, y, x, d) -> (n, h + y, w + x, d)>,
                     affine_map<(n, h, w, c, y, x, d) -> (y, x, d, c)>,
                     affine_map<(n, h, w, c, y, x, d) -> (n, h, w, c)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction",
                      "reduction"]
  } ins(%x, %w : tensor<1x?x?x8xf32>, tensor<3x3x8x64xf32>) outs(%y : tensor<1x?xWIDTHx64xf32>)
    attrs = {lowering_config = #config} {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %sum, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x?xWIDTHx64xf32>
  return %0 : tensor<1x?xWIDTHx64xf32>
}
"""


@pytest.mark.parametrize(("channels", "tile"), [(64, 64), (16, 16)])
def test_a_convolution_of_dynamic_width_gets_larger_tiles(channels: int, tile: int) -> None:
    check_text(
        changed(
            lambda module_op: override_conv_lowering_config(module_op, channels),
            CONVOLUTION.replace("WIDTH", "?"),
        ),
        f"""
        CHECK-DAG: lowering_config<distribution = [0, 8, 64, {channels}, 0, 0, 0],
        CHECK-DAG: vector_common_parallel = [1, 1, 4, {tile}, 0, 0, 0],
        CHECK-DAG: vector_reduction = [0, 0, 0, 0, 1, 1, 8]>
        CHECK-DAG: #iree_cpu.pipeline<ConvTileAndDecomposeExpert>, {{{{{{enable_loop_peeling}}}}}}
        """,
    )


def test_a_convolution_of_static_width_keeps_its_tiles() -> None:
    text = CONVOLUTION.replace("WIDTH", "32")
    assert unchanged(lambda module_op: override_conv_lowering_config(module_op, 64), text)


# Workloads

DISPATCH = """
#layout = #hal.pipeline.layout<constants = 2, bindings = [#hal.pipeline.binding<storage_buffer>]>
module {
  hal.executable private @scale {
    hal.executable.variant public @cpu target(<"llvm-cpu", "embedded-elf-x86_64">) {
      hal.executable.export public @scale ordinal(0) layout(#layout)
          count(%device: !hal.device, %a: index, %b: index) -> (index, index, index) {
        %one = arith.constant 1 : index
        hal.return %a, %b, %one : index, index, index
      }
      builtin.module {
        func.func @scale() {
          %0 = hal.interface.constant.load layout(#layout) ordinal(0) : i32
          %1 = hal.interface.constant.load layout(#layout) ordinal(1) : i32
          %rows = arith.index_castui %0 : i32 to index
          %columns = arith.index_castui %1 : i32 to index
          %2 = iree_tensor_ext.dispatch.workload.ordinal %rows, FIRST : index
          %3 = iree_tensor_ext.dispatch.workload.ordinal %columns, SECOND : index
          return
        }
      }
    }
  }
  util.func public @main(%rows: index, %columns: index, %buffer: !stream.resource<external>,
      %size: index) -> !stream.timepoint {
    %c0 = arith.constant 0 : index
    %0 = arith.index_castui %rows : index to i32
    %1 = arith.index_castui %columns : index to i32
    %2 = stream.cmd.execute with(%buffer as %inner: !stream.resource<external>{%size}) {
      stream.cmd.dispatch @scale::@cpu::@scale[%rows, %columns](%0, %1 : i32, i32) {
        rw %inner[%c0 for %size] : !stream.resource<external>{%size}
      }
    } => !stream.timepoint
    util.return %2 : !stream.timepoint
  }
}
"""


def test_a_size_is_numbered_as_the_dispatch_passes_it() -> None:
    check_text(
        changed(fix_workload_ordinals, DISPATCH.replace("FIRST", "0").replace("SECOND", "0")),
        """
        CHECK: %[[FIRST:.*]] = hal.interface.constant.load layout(#{{.*}}) ordinal(0) : i32
        CHECK: %[[SECOND:.*]] = hal.interface.constant.load layout(#{{.*}}) ordinal(1) : i32
        CHECK: %[[ROWS:.*]] = arith.index_castui %[[FIRST]]
        CHECK: %[[COLUMNS:.*]] = arith.index_castui %[[SECOND]]
        CHECK: iree_tensor_ext.dispatch.workload.ordinal %[[ROWS]], 0 : index
        CHECK: iree_tensor_ext.dispatch.workload.ordinal %[[COLUMNS]], 1 : index
        """,
    )


def test_right_numbers_of_sizes_stay() -> None:
    assert unchanged(fix_workload_ordinals, DISPATCH.replace("FIRST", "0").replace("SECOND", "1"))
    assert unchanged(fix_workload_ordinals, PAD)
