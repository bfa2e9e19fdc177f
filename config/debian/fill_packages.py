"""Fill the folders of the Debian packages: a private environment, of which each extra has its share.

    fill_packages.py WHEEL LOCK DEBIAN

WHEEL is ours, LOCK the file with all packages it needs, by hash, and DEBIAN the folder with `control`. The
environment is made with Debian's Python. A package of Python that one extra alone needs goes to that
extra's Debian package; what two of them need, or the daemon itself, goes to `mnemosyned`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

BASE = "mnemosyned"
LOCK = "requirements-server.lock"
EXTRAS = ("postgres", "oidc", "otel", "top", "personal")
COMMANDS = ("mnemosyned", "mnem", "mnem-hook")
PYTHON = "/usr/bin/python3"
HOME = Path("usr/lib/mnemosyned")
LEFT_OUT = {"pip"}
"""sqlite-utils wants it for a command of its own; packages come from Debian's tools here."""
NOT_SHIPPED = re.compile(
    r"(^|/)(tests?|__pycache__|INSTALLER|RECORD|REQUESTED|direct_url\.json)(/|$)"
)
"""Tests, and what pip writes for itself: the path of this build, hashes of files that dpkg has, too."""


def main(wheel: Path, lock: Path, debian: Path) -> None:
    """Make the environment and copy its files to `debian`/PACKAGE."""
    version = subprocess.run(
        [PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    with tempfile.TemporaryDirectory() as room:
        environment = Path(room) / "venv"
        subprocess.run([PYTHON, "-m", "venv", "--without-pip", environment], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin/python")]
        pip += ["install", "-q", "--disable-pip-version-check", "--no-compile"]
        subprocess.run([*pip, "--require-hashes", "--no-deps", "-r", lock], check=True)
        subprocess.run([*pip, "--no-deps", wheel], check=True)
        packages = Path("lib") / f"python{version}" / "site-packages"
        fill(environment, packages, version, debian)
    add_base(version, debian)
    for name in (BASE, *(f"{BASE}-{extra}" for extra in EXTRAS)):
        for script in ("postinst", "prerm"):
            text = (debian / f"{script}.in").read_text()
            (debian / f"{name}.{script}").write_text(text.replace("#PACKAGE#", name))


def fill(environment: Path, packages: Path, version: str, debian: Path) -> None:
    """Copy each package of Python to the Debian package that has it."""
    site = environment / packages
    installed = {
        canonicalize_name(each.metadata["Name"]): each
        for each in distributions(path=[str(site)])
    }
    needed = {extra: closure(installed, extra, version) for extra in EXTRAS}
    base = closure(installed, "", version)
    for name, distribution in installed.items():
        owners = [extra for extra in EXTRAS if name in needed[extra]]
        if name in LEFT_OUT:
            continue
        if not (owners or name in base):
            sys.exit(f"{name} is in {LOCK}, and nothing needs it: run `make lock`")
        own = name in base or len(owners) > 1
        target = debian / (BASE if own else f"{BASE}-{owners[0]}") / HOME / packages
        for file in distribution.files or ():
            if ".." in file.parts or NOT_SHIPPED.search(str(file)):
                continue
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(site / file, target / file)


def closure(installed: dict[str, Distribution], extra: str, version: str) -> set[str]:
    """Return the names of all packages that ours needs, for an extra those with it."""
    place = {"python_version": version, "python_full_version": f"{version}.0"}
    seen: set[tuple[str, str]] = set()
    waiting = deque([(BASE, extra)])
    while waiting:
        name, wanted = step = waiting.popleft()
        if step in seen:
            continue
        seen.add(step)
        for line in installed[name].requires or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate(
                {**place, "extra": wanted}
            ):
                own = canonicalize_name(needed.name)
                waiting.extend((own, each) for each in ("", *needed.extras))
    return {name for name, _ in seen}


def add_base(version: str, debian: Path) -> None:
    """Add to `mnemosyned` what makes an environment of it, its commands, units, settings and pages."""
    root = debian / BASE
    home = root / HOME
    (home / "bin").mkdir()
    (home / "bin" / "python3").symlink_to(f"../../../bin/python{version}")
    (home / "pyvenv.cfg").write_text(
        f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {version}\n"
    )
    (root / "usr/bin").mkdir(parents=True)
    site = home / f"lib/python{version}/site-packages"
    (ours,) = distributions(name=BASE, path=[str(site)])
    for name in COMMANDS:
        (point,) = ours.entry_points.select(name=name, group="console_scripts")
        script = home / "bin" / name
        script.write_text(
            f"#!/{HOME}/bin/python3\nimport sys\nfrom {point.module} import {point.attr}\n"
            f"sys.exit({point.attr}())\n"
        )
        script.chmod(0o755)
        (root / "usr/bin" / name).symlink_to(f"../lib/mnemosyned/bin/{name}")
    units = root / "usr/lib/systemd/user"
    units.mkdir(parents=True)
    shutil.copyfile("systemd/mnemosyned.service", units / "mnemosyned.service")
    for source, target in (
        ("mnemosyned-system.service", f"{BASE}.service"),
        ("mnemosyned-server.service", f"{BASE}.mnemosyned-server.service"),
    ):
        shutil.copyfile(Path("systemd") / source, debian / target)
    settings = root / "etc/mnemosyned"
    (settings / "credentials").mkdir(parents=True)
    for name in ("mnemosyned.yaml", "server.yaml"):
        shutil.copyfile(Path("config") / name, settings / name)
    pages = [PYTHON, "config/packaging/manual_pages.py", root / "usr/share"]
    environ = {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(pages, check=True, env={**os.environ, **environ})
    major, minor = map(int, version.split("."))
    (debian / f"{BASE}.substvars").write_text(
        f"mnemosyned:Python=python3 (>= {version}), python3 (<< {major}.{minor + 1})\n"
    )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
