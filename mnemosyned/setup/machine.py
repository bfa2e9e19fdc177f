"""The places of this user's tools on this machine, and our own programs."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A user's home, environment and present directory."""

    home: Path
    directory: Path
    environment: Mapping[str, str]
    platform: str = sys.platform

    @classmethod
    def present(cls) -> Machine:
        """The machine this process runs on."""
        return cls(home=Path.home(), directory=Path.cwd(), environment=dict(os.environ))

    @property
    def config(self) -> Path:
        """The directory of configuration files by the XDG rules."""
        return self.folder("XDG_CONFIG_HOME", self.home / ".config")

    @property
    def applications(self) -> Path:
        """The directory in which desktop programs keep their settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.config

    def folder(self, variable: str, default: Path) -> Path:
        """The directory a variable names, or the default one."""
        return Path(self.environment.get(variable) or default)

    def program(self, *names: str) -> Path | None:
        """The first of these programs that is on the PATH."""
        for name in names:
            if found := shutil.which(name, path=self.environment.get("PATH", "")):
                return Path(found).absolute()
        return None

    def shown(self, path: Path) -> str:
        """A path as people write it, with ~ for the home."""
        try:
            return f"~/{path.relative_to(self.home)}"
        except ValueError:
            return str(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """The two programs that tools start, by paths that outlive a new version."""

    mnem: Path
    hook: Path

    @classmethod
    def of(cls, machine: Machine, started: Path) -> Programs:
        """Return the programs of the installation that was `started`, by links on the PATH if there are any."""
        folder = started.resolve().parent
        if not (folder / "mnem").exists():  # such as `python -m`
            folder = Path(sysconfig.get_path("scripts"))
        return cls(
            mnem=_stable(machine, folder / "mnem"),
            hook=_stable(machine, folder / "mnem-hook"),
        )

    @property
    def missing(self) -> list[Path]:
        """The programs that do not exist or cannot be run."""
        return [path for path in (self.mnem, self.hook) if not os.access(path, os.X_OK)]

    @property
    def temporary(self) -> bool:
        """Whether they are in a cache, as `uvx` and `pipx run` have them."""
        caches = (Path(".cache") / name for name in ("uv", "pipx"))
        return any(f"/{cache}/" in str(self.mnem) for cache in caches)


def _stable(machine: Machine, program: Path) -> Path:
    """A link on the PATH that leads to a program, which stays when that moves; else itself."""
    for folder in machine.environment.get("PATH", "").split(os.pathsep):
        link = (Path(folder) / program.name).absolute()
        if folder and link.is_symlink() and link.resolve() == program.resolve():
            return link
    return program.absolute()
