"""Special functions, linear algebra and other functions that `ir_digest.py` compares.

Lines of this file are part of compiled artifacts, so digests of compiles change when it is edited:
run `ir_digest.py --save` on the old code and on the new one where it must be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from pelton import aot

FLOAT, HALF, BRAIN, DOUBLE = torch.float32, torch.float16, torch.bfloat16, torch.float64
I8, U8, I32, I64, BOOL = torch.int8, torch.uint8, torch.int32, torch.int64, torch.bool


def rows(*shape: int, dtype: torch.dtype = FLOAT) -> aot.InputInfo:
    """Return an input of a dynamic number of rows, 2 to 16, and the sizes given."""
    return aot.InputInfo((aot.NamedDimension("rows", 2, 4, 16), *shape), dtype)


def fixed(*shape: int, dtype: torch.dtype = FLOAT) -> aot.InputInfo:
    """Return an input of a static shape."""
    return aot.InputInfo(shape, dtype)


def special(x: Tensor) -> list[Tensor]:
    s, n = torch.special, torch.full_like(x, 3)
    return [
        s.i0(x), s.i0e(x), s.i1(x), s.i1e(x), s.bessel_j0(x), s.bessel_y1(x),
        s.modified_bessel_k0(x), s.ndtri(x), s.log_ndtr(x), s.entr(x), s.polygamma(1, x),
        s.erfcx(x), s.airy_ai(x), s.spherical_bessel_j0(x), s.gammainc(x, x + 1),
        s.gammaincc(x, x + 1), s.chebyshev_polynomial_t(x, n), s.hermite_polynomial_h(x, n),
        s.laguerre_polynomial_l(x, n),
    ]  # fmt: skip


def linear_algebra(x: Tensor, y: Tensor) -> list[Any]:
    a = x @ x.mT + 4 * torch.eye(4)
    la = torch.linalg
    return [
        x @ y, torch.bmm(x, y), torch.einsum("bij,bjk->bki", x, y), torch.baddbmm(a, x, y),
        la.cholesky(a), la.solve(a, y), la.inv(a), la.det(a), la.slogdet(a), la.lu_factor(a),
        la.qr(x), la.svd(a, full_matrices=False), la.eigh(a),
        la.solve_triangular(a, y, upper=False), la.matrix_exp(x), la.pinv(a), la.matrix_power(x, 3),
        la.cross(x[..., :3], y[..., :3]), la.matrix_rank(a), la.matrix_norm(x),
    ]  # fmt: skip


def integers(n: Tensor, m: Tensor) -> list[Tensor]:
    return [
        n + m, n * m, n // m, n % m, n / m, n & m, n | m, n ^ m, ~n, n << 1, n >> 1,
        torch.gcd(n, m), n**2, torch.lcm(n, m), n.sum(1), n.cumsum(1), n.amax(0), n.abs(), -n,
        n.float(), n.bool(), n.clamp(0, 3), torch.div(n, m, rounding_mode="trunc"), n.sign(),
        torch.maximum(n, m), n < m, n.prod(1), n.to(I8), n.float().mean(), n.argmax(1),
        n.matmul(m.T), n.remainder(3),
    ]  # fmt: skip


def gradients(x: Tensor, w: Tensor) -> list[Any]:
    a = torch.ops.aten
    grad = torch.func.grad(lambda w: F.silu(F.conv2d(x, w)).square().sum())(w)
    flat = x.flatten(1)
    return [
        grad, a.gelu_backward(x, x), a.silu_backward(x, x), a.sigmoid_backward(x, x),
        a.tanh_backward(x, x), a.threshold_backward(x, x, 0),
        a._softmax_backward_data(flat, flat, 1, FLOAT), a.elu_backward(x, 1, 1, 1, False, x),
        a.avg_pool2d_backward(x[..., :4, :4], x, [3, 3], [1, 1], [0, 0], False, True, None),
        torch.func.grad(lambda v: F.layer_norm(v, (6,)).square().sum())(x),
        torch.func.grad(lambda v: F.max_pool2d(v, 2).sum())(x),
        a.embedding_dense_backward(flat, flat[:, 0].long(), 9, -1, False),
    ]  # fmt: skip


def random(x: Tensor) -> list[Tensor]:
    return [
        torch.rand_like(x), torch.randn(3, x.shape[0]), torch.randint(0, 9, (4,)),
        torch.bernoulli(x), F.dropout(x, 0.3), torch.normal(0.0, 1.0, (2, 3)),
        torch.empty_like(x).exponential_(), torch.multinomial(x, 2),
    ]  # fmt: skip


def creation(x: Tensor) -> list[Tensor]:
    n = x.shape[0]
    return [
        torch.arange(n), torch.arange(0, 5, 0.5), torch.linspace(0, 1, 7), torch.eye(3, 4),
        torch.full((n, 2), 2.5), torch.zeros(n, dtype=I32), torch.ones(2, n, dtype=BOOL),
        torch.tensor([1.0, 2.0]), torch.logspace(0, 2, 3), torch.tensor(3),
        torch.tril_indices(3, 4), torch.hann_window(5), torch.full_like(x, 7),
        torch.empty(2, n) * 0, torch.tensor([[True], [False]]),
    ]  # fmt: skip


CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "special": (special, (rows(8),)),
    "linear_algebra": (linear_algebra, (fixed(2, 4, 4), fixed(2, 4, 4))),
    "integers": (integers, (fixed(4, 6, dtype=I32), fixed(4, 6, dtype=I32))),
    "integers_dynamic": (integers, (rows(6, dtype=I64), rows(6, dtype=I64))),
    "gradients": (gradients, (fixed(2, 3, 6, 6), fixed(3, 3, 1, 1))),
    "random": (random, (rows(8),)),
    "creation": (creation, (rows(8),)),
}  # fmt: skip
"""What to export for each name: the function, and its arguments."""

PROGRAMS: dict[str, Callable[[], aot.ExportOutput]] = {
    name: lambda function=function, args=args: aot.export(function, args=args)
    for name, (function, args) in CALLS.items()
}
"""What exports each program, by name."""
