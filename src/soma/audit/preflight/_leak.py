"""Does the answer for one sample hang on the others in its batch?"""

import torch

from soma.audit.preflight._check import Check
from soma.audit.preflight._rows import first_rows_of, with_others_replaced
from soma.audit.preflight._subject import Subject
from soma.engine import row_count

NAME = "leak"
SLACK = 1e-3  # of the row's largest number: sums of many floats round in another order


def check_leak(subject: Subject, x: object, y: object) -> Check:
    """Give the same first sample among other ones, and compare its answer in eval."""
    count = row_count(x)
    if count is None or count < 3:
        return Check(
            name=NAME, outcome="skipped", told="three samples or more are needed to tell them apart"
        )
    before = first_rows_of(subject.answer(x))
    after = first_rows_of(subject.answer(with_others_replaced(x)))
    apart = max(
        (_distance(one, other) for one, other in zip(before, after, strict=False)), default=0.0
    )
    numbers = {"distance": apart}
    if apart > SLACK or len(before) != len(after):
        return Check(
            name=NAME,
            outcome="warning",
            told=f"the answer for a sample changes by {apart:.2g} of its size when the others in "
            "its batch are other ones",
            help="Look for a sum, a softmax, a norm or a reshape over axis 0, the batch; in eval "
            "a batch norm is no reason.",
            numbers=numbers,
        )
    return Check(name=NAME, outcome="ok", told="each sample is answered by itself", numbers=numbers)


def _distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """Return the largest difference, as a share of the largest number."""
    if one.shape != other.shape:
        return float("inf")
    if not one.numel():
        return 0.0
    one, other = one.to(torch.float64), other.to(torch.float64)
    largest = float(torch.maximum(one.abs().max(), other.abs().max()))
    apart = float((one - other).abs().nan_to_num(0.0).max())
    return apart / largest if largest else 0.0
