"""Certificates of authorities that tests make, by openssl."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from support.openssl import NEW_KEY, openssl

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


@dataclass(frozen=True, slots=True)
class Certificate:
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
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self.file = folder / "authority.pem"
        self._key = folder / "authority.key"
        (folder / "index").touch()
        (folder / "serial").write_text("01")
        (folder / "config").write_text(CONFIG.format(folder=folder))
        openssl(
            f"req -x509 {NEW_KEY} -days 9 -subj /CN=authority-{folder.name}",
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
        openssl(
            f"req -new {NEW_KEY} -subj /CN=server",
            *("-addext", f"subjectAltName={','.join(names)}"),
            *("-keyout", made.key, "-out", request),
        )
        made.key.chmod(0o600)
        now = datetime.now(UTC)
        openssl(
            "ca -batch -notext -rand_serial",
            *("-config", self._folder / "config"),
            *("-cert", self.file, "-keyfile", self._key),
            *("-startdate", f"{now + begins:%Y%m%d%H%M%SZ}"),
            *("-enddate", f"{now + ends:%Y%m%d%H%M%SZ}"),
            *("-in", request, "-out", made.certificate),
        )
        return made
