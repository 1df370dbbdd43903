"""``python -m ggshell``: the command line, for environments without its script on the PATH."""

from __future__ import annotations

import sys

from ggshell.cli.main import main

sys.exit(main())
