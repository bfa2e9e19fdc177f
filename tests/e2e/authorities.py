"""Certificates of authorities that tests make, by openssl."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

HAVE_OPENSSL = pytest.mark.skipif(
    not shutil.which("openssl"), reason="openssl is not installed"
)
CONFIG = """
[ca]
default_ca = usual
[usual]
database = {folder}/index
serial = {folder}/serial
new_certs_dir = {folder}
default_md = sha256
policy = any
unique_subject = no
copy_extensions = copy
[any]
commonName = supplied
"""
_CURVE = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, of PEM."""

    certificate: Path
    key: Path

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a daemon that has it, on a port of its own."""
        return {
            "MNEMOSYNE_LISTEN": "127.0.0.1:0",
            "MNEMOSYNE_TLS_CERTIFICATE": str(self.certificate),
            "MNEMOSYNE_TLS_KEY": str(self.key),
        }


class Authority:
    """An authority that signs certificates."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self.file = folder / "authority.pem"
        self._key = folder / "authority.key"
        (folder / "index").touch()
        (folder / "serial").write_text("01")
        (folder / "config").write_text(CONFIG.format(folder=folder))
        _openssl(
            f"req -x509 {_CURVE} -days 9 -subj /CN=authority-{folder.name}",
            *("-addext", "keyUsage=critical,keyCertSign"),
            *("-keyout", self._key, "-out", self.file),
        )

    def issue(
        self,
        *names: str,
        begins: timedelta = timedelta(days=-2),
        ends: timedelta = timedelta(days=2),
    ) -> Certificate:
        """Sign a certificate for these names, such as `DNS:localhost`."""
        stem = self._folder / f"server-{len(list(self._folder.iterdir()))}"
        made = Certificate(stem.with_suffix(".pem"), stem.with_suffix(".key"))
        request = stem.with_suffix(".csr")
        _openssl(
            f"req -new {_CURVE} -subj /CN=server",
            *("-addext", f"subjectAltName={','.join(names)}"),
            *("-keyout", made.key, "-out", request),
        )
        made.key.chmod(0o600)
        now = datetime.now(UTC)
        _openssl(
            "ca -batch -notext -rand_serial",
            *("-config", self._folder / "config"),
            *("-cert", self.file, "-keyfile", self._key),
            *("-startdate", f"{now + begins:%Y%m%d%H%M%SZ}"),
            *("-enddate", f"{now + ends:%Y%m%d%H%M%SZ}"),
            *("-in", request, "-out", made.certificate),
        )
        return made


def _openssl(words: str, *further: str | Path) -> None:
    command = ["openssl", *words.split(), *map(str, further)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
