"""A daemon whose writes can be made to fail: `ioshim.c`, compiled and preloaded."""

from __future__ import annotations

import mmap
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.daemons import Daemon, Json, running

SOURCE = Path(__file__).with_name("ioshim.c")
CONTROL = struct.Struct("5i")


class Faults:
    """The control of one daemon's shim."""

    def __init__(self, control: mmap.mmap) -> None:
        self._control = control

    def arm(self, first: int, *, error: int, count: int = 0) -> None:
        """From the `first` operation on, let `count` of them fail; 0 is all."""
        CONTROL.pack_into(self._control, 0, 1, first, count, error, 0)

    def disarm(self) -> int:
        """Let everything succeed again; how many operations there were."""
        seen: int = CONTROL.unpack_from(self._control)[4]
        CONTROL.pack_into(self._control, 0, 0, 0, 0, 0, 0)
        return seen


def build(room: Path) -> Path:
    """Compile the shim; a machine that tests needs a C compiler anyway."""
    library = room / "ioshim.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True
    )
    return library


@contextmanager
def failing(
    home: Path, library: Path, **settings: Json
) -> Iterator[tuple[Daemon, Faults]]:
    """A running daemon with the shim in it, disarmed."""
    path = home / "control"
    path.write_bytes(bytes(CONTROL.size))
    with (
        path.open("r+b") as file,
        mmap.mmap(file.fileno(), CONTROL.size) as control,
        running(
            home,
            anew=True,
            LD_PRELOAD=str(library),
            IOSHIM_CONTROL=str(path),
            **settings,
        ) as daemon,
    ):
        yield daemon, Faults(control)
