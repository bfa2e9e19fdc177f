"""Exact values of a text, word for word, and their kinds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class DetailKind(StrEnum):
    """Kind of an exact value; the second half are secrets.

    PostgreSQL stores kinds as numbers in this order: it stays, and a new kind is added at the end.
    """

    DATE = "date"
    TIME = "time"
    DURATION = "duration"
    MONEY = "money"
    NUMBER = "number"
    EMAIL = "email"
    URL = "url"
    PATH = "path"
    VERSION = "version"
    HASH = "hash"
    IDENTIFIER = "identifier"

    PASSWORD = "password"  # noqa: S105 a name, not a value
    PRIVATE_KEY = "private_key"
    AWS_KEY = "aws_key"
    GITHUB_TOKEN = "github_token"  # noqa: S105 a name, not a value
    GITLAB_TOKEN = "gitlab_token"  # noqa: S105 a name, not a value
    SLACK_TOKEN = "slack_token"  # noqa: S105 a name, not a value
    JWT = "jwt"
    API_KEY = "api_key"
    TOKEN = "token"  # noqa: S105 a name, not a value
    ACCESS_CODE = "access_code"
    LOGIN_CODE = "login_code"
    SEED_PHRASE = "seed_phrase"
    COOKIE = "cookie"
    SIGNATURE = "signature"
    CARD_NUMBER = "card_number"
    IBAN = "iban"
    SSN = "ssn"


_KINDS = list(DetailKind)
SECRET_KINDS = frozenset(_KINDS[_KINDS.index(DetailKind.PASSWORD) :])
SELF_EXPLANATORY_KINDS = frozenset(
    {DetailKind.EMAIL, DetailKind.URL, DetailKind.PATH, DetailKind.IDENTIFIER}
)
"""Kinds of exact values that can be understood without their sentence; a bare number cannot."""


@dataclass(frozen=True, slots=True)
class Detail:
    """An exact value of a memory, word for word."""

    kind: DetailKind
    value: str
    sensitive: bool = False
    """A secret, or a value with a secret inside, such as a URL with a password."""
    memory: str = ""
    """The id of its memory."""
    superseded: bool = False
    """Whether its memory was superseded, so that the value is outdated."""


class Secret(NamedTuple):
    """The kind of a secret and its position in a text."""

    kind: DetailKind
    start: int
    stop: int
