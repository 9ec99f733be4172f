"""Our decompositions, run by eager torch, give what the operators give, on the database's samples.

What a compiler makes of them is measured in `tests/coverage`; this finds a wrong formula at once.
"""

import random
from itertools import islice

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pelton.aot.decompositions.registry import chain
from pelton.aot.decompositions.table import FAMILIES

pytest.importorskip("expecttest")
operators = pytest.importorskip("tests.coverage.operators")

MOST, SAMPLES = 200, 8
"""How many samples are made, and how many of them, picked by chance, are compared."""

NAMES = """
    igamma igammac polygamma.polygamma_n_0 polygamma.polygamma_n_1 polygamma.polygamma_n_3
    index_reduce.mean index_reduce.prod index_reduce.amin index_reduce.amax put take
    _segment_reduce.lengths _segment_reduce.offsets mode histogram _upsample_bilinear2d_aa
    nn.functional.max_pool1d nn.functional.max_pool2d nn.functional.max_pool3d
    nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d
    nonzero masked_select unique unique_consecutive nonzero_static repeat_interleave index_put
    special.hermite_polynomial_h special.hermite_polynomial_he special.laguerre_polynomial_l
    special.legendre_polynomial_p special.chebyshev_polynomial_t special.chebyshev_polynomial_u
    special.chebyshev_polynomial_v special.chebyshev_polynomial_w
    special.shifted_chebyshev_polynomial_w special.bessel_j0 special.bessel_j1 special.bessel_y0
    special.bessel_y1 special.modified_bessel_k0 special.modified_bessel_k1
    special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1 special.airy_ai
    svd linalg.svd linalg.svdvals linalg.eigh linalg.eigvalsh linalg.pinv linalg.pinv.hermitian
    linalg.pinv.singular linalg.matrix_rank linalg.cond sort topk argsort msort
    linalg.inv linalg.det linalg.slogdet linalg.qr geqrf triangular_solve linalg.lu_factor
    scatter_reduce.mean searchsorted cummax logcumsumexp median kthvalue
""".split()


class _Decomposed(TorchDispatchMode):
    """Runs our decompositions in place of the operators."""

    def __init__(self):
        super().__init__()
        self.table = chain(entry for family in FAMILIES for entry in family.entries)
        self.used = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        function = self.table.get(func)
        if function is not None:
            result = function(*args, **(kwargs or {}))
            if result is not NotImplemented:
                self.used += 1
                return result
        return func(*args, **(kwargs or {}))


@pytest.fixture(scope="module")
def infos():
    return {operators.full_name(info): info for info in operators.operator_infos()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_decompositions_give_what_the_operators_give(name, infos):
    mode = _Decomposed()
    torch.manual_seed(0)
    samples = list(islice(operators._samples(infos[name], torch.float32), MOST))
    for sample in random.Random(1).sample(samples, min(SAMPLES, len(samples))):
        wanted = sample.function(*(tensor.clone() for tensor in sample.tensors))
        with mode:
            found = sample.function(*(tensor.clone() for tensor in sample.tensors))
        for have, want in zip(found, wanted, strict=True):
            torch.testing.assert_close(have, want, rtol=1e-3, atol=1e-4, equal_nan=True)
    assert mode.used
