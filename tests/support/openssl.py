"""Certificates by the openssl program, which CI installs; a package for it would weigh on every checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HAVE_OPENSSL = pytest.mark.skipif(
    not shutil.which("openssl") and "CI" not in os.environ,
    reason="openssl is not installed",
)
"""In CI nothing is skipped for what the machine lacks: there it fails."""
NEW_KEY = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"


def openssl(words: str, *further: str | Path) -> str:
    """Run the program and return what it prints; its complaint is that of the test."""
    command = ["openssl", *words.split(), *map(str, further)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def self_signed(folder: Path, name: str, *, names: str) -> tuple[Path, Path]:
    """A certificate that signs itself, for names such as `DNS:localhost`, and its key."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    openssl(
        f"req -x509 {NEW_KEY} -days 9 -subj /CN={name} -addext subjectAltName={names}",
        *("-keyout", key, "-out", certificate),
    )
    key.chmod(0o600)
    return certificate, key
