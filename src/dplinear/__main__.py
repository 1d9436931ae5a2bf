"""`python -m dplinear`: the same as `dplinear`."""

import sys

from dplinear.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
