"""Python loads this module at its start, if its folder is on PYTHONPATH: the host of a recorded session is called ``demo``."""

import os

_REAL = os.uname()


def _neutral() -> os.uname_result:
    return os.uname_result((_REAL.sysname, "demo", _REAL.release, _REAL.version, _REAL.machine))


os.uname = _neutral
