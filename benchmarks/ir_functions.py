"""Functions of tensors whose exported MLIR `ir_digest.py` compares: operators by family.

Lines of this file are part of compiled artifacts, so digests of compiles change when it is edited:
where it must be edited, run `ir_digest.py --save` on the code before the refactoring.
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


def arithmetic(x: Tensor, y: Tensor) -> list[Tensor]:
    return [
        x + y, x - y, x * y, x / y, x // y, x % y, torch.fmod(x, y), torch.pow(x, 3), x**y, -x,
        torch.maximum(x, y), torch.minimum(x, y), x.clamp(-1, 1), x.clamp(min=y), abs(x),
        torch.where(x > y, x, y), torch.lerp(x, y, 0.3), torch.addcmul(x, x, y, value=2), x.sign(),
        torch.addcdiv(x, x, y), (x > y) & (x != y), torch.logical_xor(x > 0, y), x == y, 2 - x,
        torch.copysign(x, y), torch.hypot(x, y), torch.heaviside(x, y), torch.rsub(x, y, alpha=2),
        x.isnan(), x.isinf(), x.isfinite(), torch.isclose(x, y), torch.fmax(x, y), torch.fmin(x, y),
    ]  # fmt: skip


def elementary(x: Tensor, y: Tensor) -> list[Tensor]:
    return [
        x.exp(), x.expm1(), x.log(), x.log1p(), x.log2(), x.log10(), x.sqrt(), x.rsqrt(), x.sin(),
        x.cos(), x.tan(), x.asin(), x.acos(), x.atan(), torch.atan2(x, y), x.sinh(), x.cosh(),
        x.tanh(), x.asinh(), x.acosh(), x.atanh(), x.erf(), x.erfc(), x.erfinv(), x.lgamma(),
        x.digamma(), x.sigmoid(), x.logit(0.1), x.floor(), x.ceil(), x.round(), x.trunc(), x.frac(),
        x.exp2(), x.sinc(), x.nan_to_num(), torch.logaddexp(x, y), x.reciprocal(), x.square(),
        torch.xlogy(x, y), x.deg2rad(), torch.ldexp(x, y), x.round(decimals=2),
    ]  # fmt: skip


def activations(x: Tensor, weight: Tensor) -> list[Tensor]:
    return [
        F.relu(x), F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.elu(x), F.selu(x),
        F.celu(x), F.hardswish(x), F.hardsigmoid(x), F.mish(x), F.softplus(x), F.leaky_relu(x),
        F.prelu(x, weight), F.glu(x), F.logsigmoid(x), F.hardtanh(x), F.softshrink(x), F.relu6(x),
        F.threshold(x, 0.1, 20.0), F.softmax(x, 1), F.log_softmax(x, 0), F.softsign(x),
        F.normalize(x), F.tanhshrink(x), F.hardshrink(x), F.rrelu(x), F.gumbel_softmax(x),
    ]  # fmt: skip


def reductions(x: Tensor) -> list[Any]:
    return [
        x.sum(), x.sum(0), x.mean((0, 1), keepdim=True), x.var(1), x.std(0, correction=0),
        x.prod(1), x.amax(1), x.amin(0), x.argmax(1), x.argmin(), x.max(1), x.min(0),
        x.logsumexp(1), x.norm(), x.norm(1, 0), (x > 0).any(1), (x > 0).all(), x.cumsum(1),
        x.cumprod(0), x.cummax(1), x.logcumsumexp(1), x.nansum(), torch.aminmax(x),
        torch.var_mean(x, 1), x.count_nonzero(1), torch.linalg.vector_norm(x, 3, 1),
        torch.cdist(x, x), x.nanmean(0), x.diff(dim=1), torch.linalg.vector_norm(x, float("inf")),
        torch.trapezoid(x, dim=1), x.max(), x.argmax(),
    ]  # fmt: skip


def ordering(x: Tensor, n: Tensor) -> list[Any]:
    return [
        x.sort(1), n.sort(0, descending=True), x.topk(3, 1), n.topk(2, largest=False), x.argsort(1),
        x.kthvalue(2, 1), x.median(1), x.median(), x.nanmedian(1), torch.quantile(x, 0.3, 1),
        torch.searchsorted(x[0].contiguous(), x), torch.bucketize(x, torch.arange(5.0)), x.mode(1),
        torch.histc(x, 4), torch.bincount(n.flatten().abs(), minlength=3), x.msort(),
    ]  # fmt: skip


def indexing(x: Tensor, i: Tensor) -> list[Tensor]:
    two = i[:, :2]
    places = i[:, 0]
    return [
        x[places], x[:, places], x[places, places], x[None, :, ::2], x[..., -1], x.gather(1, i),
        x.scatter(1, two, x), x.scatter_add(1, two, x), x.scatter(1, i, 2.0),
        x.scatter_reduce(1, two, x, "amax"),
        x.scatter_reduce(1, two, x, "mean", include_self=False), x.index_select(0, places),
        x.index_add(0, places, x), x.index_copy(0, places, x),
        x.index_put((places,), x, accumulate=True), x.index_put((i,), x[0]), x.take(i),
        x.take_along_dim(i, 1), x.masked_fill(x > 0, 1.0), x.masked_scatter(x > 0, x),
        F.embedding(i, x), F.one_hot(i, 8), x.index_fill(1, torch.tensor([0, 2]), -1.0),
        F.embedding_bag(i, x, mode="sum"), x.select_scatter(x[0], 0, 1),
        x.slice_scatter(x[:, :2], 1, 1, 3), x.diagonal_scatter(x.diagonal() * 2),
        x.index_reduce(0, places, x, "prod"),
    ]  # fmt: skip


def data_dependent(x: Tensor) -> list[Any]:
    picked = x[x > 0]
    return [x.nonzero(), picked, picked * 2, x.masked_select(x < 0).sum(), torch.argwhere(x > 1)]


def views(x: Tensor) -> list[Any]:
    n, c = x.shape[0], x.shape[1]
    return [
        x.reshape(-1), x.view(n, 2, c // 2), x.permute(1, 0), x.T, x.flatten(),
        x.unflatten(1, (2, -1)), x.unsqueeze(1).squeeze(1), x[:, :1].expand(n, 5), x.repeat(2, 3),
        x.tile(2), x.roll(1, 0), x.flip(0), x.rot90(), x.split(2, 1), x.chunk(3, 1), x.unbind(1),
        torch.cat([x, x * 2]), torch.stack([x, x], 1), x.narrow(1, 1, 2), x.tril(), x.triu(1),
        x.diag(), x.diag_embed(), x.unfold(1, 3, 1), torch.meshgrid(x[0], x[1], indexing="ij"),
        x.repeat_interleave(2, 1), torch.block_diag(x, x), x.movedim(0, 1), x.hsplit(2),
        x.new_zeros(n, 2), x.trace(), torch.tensordot(x, x, ([1], [1])), torch.kron(x, x[:1]),
    ]  # fmt: skip


def pooling(x: Tensor) -> list[Any]:
    return [
        F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1, return_indices=True), F.avg_pool2d(x, 3, 2, 1),
        F.avg_pool2d(x, 2, ceil_mode=True, count_include_pad=False), F.adaptive_avg_pool2d(x, 3),
        F.adaptive_max_pool2d(x, (2, 3)), F.lp_pool2d(x, 2, 2), F.max_pool2d(x, 3, dilation=2),
        F.avg_pool1d(x[0], 2), F.max_pool1d(x[0], 3, 1), F.adaptive_avg_pool1d(x[0], 1),
        F.max_pool3d(x[:, None], 2), F.avg_pool3d(x[:, None], 2), F.unfold(x, 3),
    ]  # fmt: skip


def convolutions(x: Tensor, w: Tensor, t: Tensor) -> list[Tensor]:
    return [
        F.conv2d(x, w), F.conv2d(x, w, padding="same"), F.conv2d(x, w, stride=2, padding=1),
        F.conv2d(x, w, dilation=2), F.conv2d(x, w[:, :1], groups=4),
        F.conv2d(x, w[:, :2], groups=2), F.conv_transpose2d(x, t, stride=2),
        F.conv_transpose2d(x, t, padding=1, output_padding=1, stride=2),
        F.conv1d(x[:, :, 0], w[:, :, 0]), F.conv_transpose1d(x[:, :, 0], t[:, :, 0]),
        F.conv3d(x[:, :, None], w[:, :, None]), F.conv2d(x[0], w),
        F.conv_transpose2d(x, t[:, :1], groups=4),
    ]  # fmt: skip


def padding(x: Tensor) -> list[Tensor]:
    return [
        F.pad(x, (1, 2)), F.pad(x, (1, 1, 2, 0), value=3.0), F.pad(x, (-1, 1)),
        F.pad(x, (1, 2, 1, 1), "reflect"), F.pad(x, (2, 1, 1, 3), "replicate"),
        F.pad(x, (1, 1, 1, 1), "circular"), F.pad(x[0], (2, 1), "reflect"),
    ]  # fmt: skip


def sampling(x: Tensor, grid: Tensor) -> list[Tensor]:
    resize = F.interpolate
    return [
        resize(x, scale_factor=2), resize(x, size=(5, 7), mode="bilinear"),
        resize(x, (9, 3), mode="bicubic"),
        resize(x, scale_factor=1.5, mode="bilinear", align_corners=True),
        resize(x, (4, 4), mode="area"), resize(x, (3, 5), mode="nearest-exact"),
        resize(x, (4, 4), mode="bilinear", antialias=True),
        F.grid_sample(x, grid, align_corners=False),
        F.grid_sample(x, grid, "nearest", "border", True), F.pixel_shuffle(x, 2),
        F.pixel_unshuffle(x, 2), F.channel_shuffle(x, 2),
        F.affine_grid(grid[:, 0, :2].reshape(-1, 2, 2).repeat(1, 1, 2)[..., :3], [2, 1, 3, 3]),
        resize(x[0], 9, mode="linear"), resize(x[:, None], scale_factor=2.0, mode="trilinear"),
    ]  # fmt: skip


def normalisation(x: Tensor, w: Tensor) -> list[Any]:
    mean, var = torch.zeros(4), torch.ones(4)
    return [
        F.batch_norm(x, mean, var), F.batch_norm(x, None, None, training=True),
        F.layer_norm(x, (6,), w), F.group_norm(x, 2), F.instance_norm(x), F.rms_norm(x, (6,), w),
        F.local_response_norm(x, 2), F.layer_norm(x, (6, 6)), F.cosine_similarity(x, x + 1, 1),
        F.pairwise_distance(x, x * 2), torch.native_layer_norm(x, (6,), w, None, 1e-5),
        F.instance_norm(x, mean, var, use_input_stats=False),
    ]  # fmt: skip


def fourier(x: Tensor) -> list[Tensor]:
    f = torch.fft
    spectrum = f.rfft(x)
    return [
        f.fft(x), f.ifft(spectrum), f.irfft(spectrum), f.fft2(x), f.hfft(spectrum), f.fftshift(x),
        f.rfft(x, norm="ortho"), torch.stft(x, 4, return_complex=True, window=torch.ones(4)),
    ]  # fmt: skip


def complexes(x: Tensor, y: Tensor) -> list[Tensor]:
    z = torch.complex(x, y)
    return [
        z * z, z / (z + 1), z.abs(), z.angle(), z.real, z.imag, z.conj(), z.exp(), z.log(),
        z.sqrt(), z @ z.mT, torch.view_as_real(z), torch.polar(x, y), z.sum(0), z.sin(), z == z,
        z**2, z.mean(),
    ]  # fmt: skip


def booleans(p: Tensor, q: Tensor) -> list[Tensor]:
    return [
        p & q, p | q, p ^ q, ~p, p.logical_and(q), p + q, p * q, p.sum(1), p.cumsum(0), p.any(),
        p.amax(1), p.argmax(1), torch.where(p, q, False), p.to(FLOAT), p > q, p[:, None] == q,
        p.flip(0), p.prod(1), p.float().mean(), p.int() - q.int(), p.max(1).values,
        p.sort(1).values, torch.cat([p, q]),
    ]  # fmt: skip


def bytes_of(n: Tensor, m: Tensor) -> list[Tensor]:
    return [
        n + m, n * m, n // m, n % m, n & m, n >> 1, n.sum(1), n.amax(1), n.float(), n.to(I64),
        n < m, n / m, torch.maximum(n, m), n.clamp(1, 3), n.sort(1).values, -n, n.cumsum(0),
        torch.cat([n, m]), n.bool(),
    ]  # fmt: skip


def narrow(x: Tensor) -> list[Tensor]:
    return [
        x * 2, x.exp(), F.gelu(x), F.softmax(x, 1), x.sum(1), x.mean(0), F.layer_norm(x, (8,)),
        x @ x.T, x.sin(), x.float(), x.cumsum(1), x.var(1), x.amax(1), x.pow(1.5), x.tanh(),
        x.sort(1).values, x.to(I32), x.erf(),
    ]  # fmt: skip


def tiny_floats(x: Tensor) -> list[Tensor]:
    kinds = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
    return [x.to(kind).to(FLOAT) for kind in kinds] + [x.to(kind) for kind in kinds]


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> list[Tensor]:
    attend = F.scaled_dot_product_attention
    return [
        attend(q, k, v), attend(q, k, v, is_causal=True), attend(q, k, v, mask),
        attend(q, k, v, scale=0.5), attend(q, k, v, mask > 0),
        attend(q, k[:, :1], v[:, :1], enable_gqa=True), attend(q[0], k[0], v[0]),
    ]  # fmt: skip


def losses(x: Tensor, y: Tensor, classes: Tensor) -> list[Tensor]:
    return [
        F.cross_entropy(x, classes), F.cross_entropy(x, y, label_smoothing=0.1), F.mse_loss(x, y),
        F.l1_loss(x, y), F.nll_loss(x, classes, ignore_index=1),
        F.binary_cross_entropy_with_logits(x, y), F.smooth_l1_loss(x, y), F.kl_div(x, y),
        F.huber_loss(x, y), F.soft_margin_loss(x, y), F.poisson_nll_loss(x, y),
        F.margin_ranking_loss(x, y, y), F.triplet_margin_loss(x, y, x + 1),
        F.multi_margin_loss(x, classes),
    ]  # fmt: skip


def large_constants(x: Tensor) -> list[Tensor]:
    return [
        x + LARGE,
        x + LARGE.half(),
        x[:, :1] * COUNTS,
        x > FLAGS,
        x + LARGE.double(),
        x * 0.1 + 1e-30,
    ]


LARGE = torch.linspace(-1, 1, 512).reshape(1, 512).contiguous()
COUNTS = torch.arange(300)
FLAGS = LARGE > 0

CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "arithmetic": (arithmetic, (rows(8), rows(8))),
    "arithmetic_broadcast": (arithmetic, (rows(1, 3), fixed(5, 3))),
    "elementary": (elementary, (rows(8), rows(8))),
    "elementary_double": (elementary, (fixed(3, dtype=DOUBLE), fixed(3, dtype=DOUBLE))),
    "activations": (activations, (rows(8), fixed(8))),
    "reductions": (reductions, (rows(8),)),
    "reductions_static": (reductions, (fixed(4, 6),)),
    "ordering": (ordering, (rows(8), rows(8, dtype=I64))),
    "indexing": (indexing, (fixed(6, 6), fixed(6, 6, dtype=I64))),
    "data_dependent": (data_dependent, (rows(8),)),
    "views": (views, (fixed(4, 8),)),
    "pooling": (pooling, (rows(4, 12, 12),)),
    "convolutions": (convolutions, (rows(4, 8, 8), fixed(4, 4, 3, 3), fixed(4, 2, 3, 3))),
    "padding": (padding, (rows(3, 6, 6),)),
    "sampling": (sampling, (fixed(2, 4, 6, 6), fixed(2, 3, 5, 2))),
    "normalisation": (normalisation, (rows(4, 6, 6), fixed(6))),
    "fourier": (fourier, (fixed(3, 8),)),
    "complexes": (complexes, (fixed(4, 4), fixed(4, 4))),
    "booleans": (booleans, (rows(6, dtype=BOOL), rows(6, dtype=BOOL))),
    "bytes_unsigned": (bytes_of, (rows(6, dtype=U8), rows(6, dtype=U8))),
    "bytes_signed": (bytes_of, (fixed(4, 6, dtype=I8), fixed(4, 6, dtype=I8))),
    "float16": (narrow, (rows(8, dtype=HALF),)),
    "bfloat16": (narrow, (rows(8, dtype=BRAIN),)),
    "float8": (tiny_floats, (fixed(4, 6),)),
    "attention": (attention, (*(fixed(2, 4, 8, 16),) * 3, fixed(8, 8))),
    "attention_dynamic": (
        lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True),
        (rows(2, 8, 16), rows(2, 8, 16)),
    ),
    "attention_half": (
        attention,
        (*(fixed(2, 4, 8, 16, dtype=HALF),) * 3, fixed(8, 8, dtype=HALF)),
    ),
    "losses": (losses, (fixed(4, 5), fixed(4, 5), fixed(4, dtype=I64))),
    "large_constants": (large_constants, (rows(1),)),
}  # fmt: skip
"""What to export for each name: the function, and its arguments."""

PROGRAMS: dict[str, Callable[[], aot.ExportOutput]] = {
    name: lambda function=function, args=args: aot.export(function, args=args)
    for name, (function, args) in CALLS.items()
}
"""What exports each program, by name."""
