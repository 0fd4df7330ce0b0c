"""What the audit is known to miss, and why: counted as a miss all the same."""

KNOWN = {
    "weights_put_back": "weights are compared before and after the optimizer's step; what the "
    "loop does to them afterwards is not seen",
}
