"""`python -m soma` is the command `soma`."""

from soma.cli import main

if __name__ == "__main__":
    main()
