"""What the audit is known to miss, and why: counted as a miss all the same."""

KNOWN: dict[str, str] = {}
