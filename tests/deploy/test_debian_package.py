"""The Debian packages that `make deb` has built: clean, the same each time, and in and out of a Debian."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from deploy.chroots import (
    CHECKOUT,
    NEEDED,
    Chroot,
    archive,
    own_suite,
    require_programs,
)

pytestmark = pytest.mark.deb

BUILT = CHECKOUT / "build" / "deb"
OLDER = "0.0.1"
AS_USER = "setpriv --reuid 1000 --regid 1000 --clear-groups env HOME=/home/anna"


def packages(folder: Path = BUILT) -> list[Path]:
    found = sorted(folder.glob("*.deb"))
    assert len(found) == 6, "run `make deb`"
    return found


def older(package: Path, folder: Path) -> Path:
    """The package as an older version, with a module that the present one has not."""
    tree = folder / package.stem
    subprocess.run(["dpkg-deb", "-R", package, tree], check=True)
    control = tree / "DEBIAN" / "control"
    version = re.search(r"^Version: (.*)$", control.read_text(), re.MULTILINE)
    assert version
    control.write_text(control.read_text().replace(version[1], OLDER))
    for site in tree.glob("usr/lib/mnemosyned/lib/python3*/site-packages/mnemosyned"):
        (site / "of_an_older_version.py").write_text("")
    file = folder / f"{package.name.partition('_')[0]}_{OLDER}.deb"
    subprocess.run(
        ["dpkg-deb", "-Znone", "--root-owner-group", "-b", tree, file],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return file


def test_lintian_has_nothing_to_say() -> None:
    require_programs("lintian")
    (changes,) = BUILT.glob("*.changes")

    done = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error,warning", changes],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (0, "")


def test_each_override_of_lintian_has_its_reason() -> None:
    files = [*(CHECKOUT / "config/debian").glob("*.lintian-overrides")]

    assert files
    for file in files:
        blocks = re.findall(
            r"((?:^#.*\n)*)((?:^[^#\n].*\n)+)", file.read_text(), re.MULTILINE
        )
        assert blocks
        assert all(reason for reason, _ in blocks)


def test_the_same_commit_gives_the_same_packages(tmp_path: Path) -> None:
    again = tmp_path / "deb"
    environ = {**os.environ, "DEB": str(again), "TZ": "Asia/Kathmandu", "LC_ALL": "C"}
    variables = [
        f"{name}={value}" for name in ("VENV",) if (value := os.environ.get(name))
    ]
    subprocess.run(
        ["make", "-s", "deb", f"DEB={again}", *variables], cwd=CHECKOUT, env=environ,
        umask=0o027, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip

    sums = [
        {
            file.name: hashlib.sha256(file.read_bytes()).hexdigest()
            for file in packages(folder)
        }
        for folder in (BUILT, again)
    ]
    assert sums[0] == sums[1]


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    shutil.rmtree(tmp_path)  # a gigabyte


def test_it_is_installed_upgraded_removed_and_purged(room: Path) -> None:
    debian = Chroot(room / "root", archive(own_suite(), *NEEDED))
    debian.run("useradd -m -u 1000 anna")
    before = debian.files()
    debs = debian.root / "debs"
    debs.mkdir()
    old = [
        older(package, room) for package in packages() if "personal" not in package.name
    ]
    for package in (*old, *packages()):
        shutil.copy(package, debs)
    install = "apt-get install -qq --no-install-recommends -o Dpkg::Use-Pty=0"

    debian.run(
        f"""
        exec 3>/debs/found
        {install} /debs/*_{OLDER}.deb >/dev/null
        ls /usr/lib/mnemosyned/lib/*/site-packages/mnemosyned/of_an_older_version.py >/dev/null
        ls /usr/lib/mnemosyned/lib/*/site-packages/mnemosyned/__pycache__/of_an_older*.pyc >/dev/null
        stat -c %a /etc/mnemosyned/credentials >&3
        test ! -e /etc/systemd/system/multi-user.target.wants/mnemosyned-server.service
        echo 'wm_max: 500' >>/etc/mnemosyned/mnemosyned.yaml
        {AS_USER} mnem start >/dev/null
        {AS_USER} mnem remember 'the code of the key box is 4096' >/dev/null
        /usr/lib/mnemosyned/bin/python3 -c 'import opentelemetry.sdk, psycopg, textual; psycopg.pq.version()'

        {install} $(ls /debs/*.deb | grep -v -e _{OLDER}.deb -e personal) >/dev/null
        test ! -e /usr/lib/mnemosyned/lib/*/site-packages/mnemosyned/of_an_older_version.py
        ls /usr/lib/mnemosyned/lib/*/site-packages/mnemosyned/__pycache__/ | grep -c of_an_older >&3 || true
        /usr/lib/mnemosyned/bin/python3 -c 'import opentelemetry.sdk, psycopg, textual; psycopg.pq.version()'
        tail -n 1 /etc/mnemosyned/mnemosyned.yaml >&3
        {AS_USER} mnem restart >/dev/null
        {AS_USER} mnem recall 'key box' | grep -c 4096 >&3
        {AS_USER} mnem import --help >/dev/null
        {AS_USER} mnem stop >/dev/null
        ls /usr/share/man/man1/ | grep -c '^mnem' >&3
        """
    )

    mode, stale, kept, recalled, pages = (debs / "found").read_text().splitlines()
    assert (mode, stale, kept, recalled) == ("700", "0", "wm_max: 500", "1")
    assert int(pages) > 10

    debian.run(
        "touch /etc/mnemosyned/credentials/key.pem; apt-get remove -qq 'mnemosyned*' >/dev/null"
    )
    assert not (debian.root / "usr/lib/mnemosyned").exists()
    assert not (debian.root / "usr/bin/mnem").is_symlink()
    assert (debian.root / "etc/mnemosyned/mnemosyned.yaml").exists()

    debian.run("apt-get purge -qq 'mnemosyned*' >/dev/null")
    left = {
        path
        for path in debian.files() - before
        if not path.startswith(("debs", "home/anna/."))
    }
    assert left == set()
    assert (debian.root / "home/anna/.local/state/mnemosyned/memory.db").exists()
