"""Addresses on this machine for the setting `listen`."""

from __future__ import annotations

import ipaddress

LOCALHOST = "localhost"


def tcp_address(setting: str, *, tls: bool = False) -> tuple[str, int]:
    """The host and port that `listen` names. Raises `ValueError` with what is wrong."""
    name, colon, digits = setting.rpartition(":")
    port = int(digits) if digits.isdecimal() and digits.isascii() else -1
    if not colon or not 0 <= port <= 65_535:
        raise ValueError('write it as "127.0.0.1:7464"')
    if name.lower() == LOCALHOST:
        return "127.0.0.1", port
    try:
        address = ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        raise ValueError(
            "the host must be localhost or an address of this machine"
        ) from None
    if (address.version == 6) != name.startswith("["):
        raise ValueError('write an IPv6 address as "[::1]:7464"')
    if not (tls or address.is_loopback):
        raise ValueError(
            "only loopback is allowed without TLS: set tls.certificate and tls.key, or forward "
            "the socket or this port with ssh"
        )
    return str(address), port
