"""Counts as people write them."""


def counted(count: int, thing: str) -> str:
    """Return how many there are of a thing, in words.

    >>> counted(1, "node"), counted(1200, "node")
    ('1 node', '1,200 nodes')
    """
    return f"1 {thing}" if count == 1 else f"{count:,} {thing}s"


def amount(count: int) -> str:
    """Return a count of parameters as people write it.

    >>> amount(512), amount(8_224), amount(1_200_000)
    ('512', '8.2k', '1.2M')
    """
    for size, unit in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k")):
        if count >= size * 0.99995:
            share = count / size
            return f"{share:.1f}{unit}" if share < 99.95 else f"{share:.0f}{unit}"
    return str(count)
