"""What the audit is known to miss, and why: counted as a miss all the same."""

KNOWN = {
    "weights_put_back": "weights are compared before and after the optimizer's step; what the "
    "loop does to them afterwards is not seen",
    "nothing_zeroed_in_a_game": "two optimizers step in turns; a gradient that the other one's "
    "backward has added to is not recognised as one used before",
}
KNOWN_IN_A_PLAIN_LOOP = {
    **KNOWN,
    "waves_at_rate_two": "a plain loop does not tell the loss, and the line is higher without it",
    "all_hardly_moves": "a plain loop does not tell the loss, so the run may be solved",
}
