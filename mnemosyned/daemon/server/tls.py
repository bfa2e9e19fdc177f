"""TLS of the clients over TCP: the certificate, and one client's channel between bytes and bytes."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path
from typing import NoReturn

from mnemosyned.domain.errors import ConfigInvalid

PART_BYTES = 64 * 1024


class Certificate:
    """The certificate of the daemon, which can be read again when it was renewed."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read both files, of PEM. Raises `ConfigInvalid`."""
        self._files = (certificate, key)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._context.set_alpn_protocols(["http/1.1"])
        self.read()

    def read(self) -> None:
        """Read the files again: new clients get what they hold now. Raises `ConfigInvalid`."""
        certificate, key = self._files
        try:
            if key.stat().st_mode & stat.S_IRWXO:
                _refuse(f"others may read {key}; take that right from them", "tls.key")
            self._context.load_cert_chain(certificate, key, password=_no_password)
        except OSError as error:  # which a mistake in a file is, too
            reason = error.strerror or str(error)
            _refuse(
                f"{certificate} with {key} cannot be used: {reason}", "tls.certificate"
            )

    def channel(self) -> TlsChannel:
        """The channel of a new client."""
        return TlsChannel(self._context)


class TlsChannel:
    """One client's bytes, opened and sealed; it moves none of them itself."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def open(self, data: bytes) -> bytes | None:
        """The client's words in these bytes; None where it is no word yet.

        Empty where it said that it leaves, or broke the rules. `unsent` may have an answer then.
        """
        self._incoming.write(data)
        parts: list[bytes] = []
        try:
            while part := self._tls.read(PART_BYTES):
                parts.append(part)
        except ssl.SSLWantReadError:
            return b"".join(parts) or None
        except ssl.SSLError:
            pass
        return b"".join(parts)

    def seal(self, data: bytes) -> bytes:
        """The bytes that say this to the client. Raises `OSError` where it cannot be said."""
        self._tls.write(data)
        return self.unsent()

    def unsent(self) -> bytes:
        """Bytes that the protocol itself has for the client."""
        return self._outgoing.read()


def _no_password() -> str:
    """Refuse a key that only a password opens: nobody is there to type it."""
    raise OSError("the key is encrypted; decrypt it, and protect the file")


def _refuse(reason: str, field: str) -> NoReturn:
    raise ConfigInvalid(f"{field}: {reason}", field=field)
