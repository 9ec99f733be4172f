"""`python -m pelton.cli`: the command line where its script is not on the path."""

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
