"""Operators along a dimension, of tensors without one and of one element, beside eager torch."""

import torch

X = torch.tensor(0.7)

OPERATORS = {
    "softmax": lambda x: torch.softmax(x, -1),
    "softmax of another type": lambda x: torch.softmax(x, 0, dtype=torch.float64),
    "log_softmax": lambda x: torch.log_softmax(x, 0),
    "var": lambda x: x.var(0, correction=0),
    "var of all, biased": lambda x: x.var(0, False),
    "std": lambda x: x.std(0, False),
    "var and mean": lambda x: torch.var_mean(x, 0, correction=0),
    "gather": lambda x: x.gather(0, torch.zeros_like(x).long()),
    "scatter": lambda x: x.scatter(0, torch.zeros_like(x).long(), 2.0),
    "scatter of a tensor": lambda x: x.scatter(0, torch.zeros_like(x).long(), x * 3),
    "scatter_add": lambda x: x.scatter_add(0, torch.zeros_like(x).long(), x),
    "scatter along the last": lambda x: x.scatter(-1, torch.zeros_like(x).long(), x * 3),
    "scatter_reduce": lambda x: x.scatter_reduce(0, torch.zeros_like(x).long(), x * 3, "amax"),
    "flip": lambda x: x.flip(0),
    "prelu": lambda x: torch.prelu(-x, torch.tensor([0.2])),
}


def test_operators_along_a_dimension_of_one_element(check):
    check(OPERATORS, [X])
    check(OPERATORS, [X[None]])


PLACE = torch.tensor(1)

VECTORS = {
    "gather": lambda x: x.gather(-1, PLACE),
    "gather from a scalar": lambda x: x[2].gather(0, torch.zeros(3, dtype=torch.int64)),
    "scatter": lambda x: x.scatter(0, PLACE, 5.0),
    "scatter of a scalar": lambda x: x.scatter(0, PLACE, x[2]),
    "scatter_add": lambda x: x.scatter_add(0, PLACE, x),
    "scatter_reduce": lambda x: x.scatter_reduce(0, PLACE, x * 3, "amax"),
    "write": lambda x: x.clone().scatter_(0, PLACE, -1.0),
}


def test_vectors_at_an_index_without_dimensions(check):
    check(VECTORS, [torch.tensor([1.5, -2.0, 3.0])])
