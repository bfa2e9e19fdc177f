"""Secrets of some texts in others: as many as there are, found as when each is searched for."""

from __future__ import annotations

from hypothesis import given, strategies as st

from mnemosyned.text.details import Detail, DetailKind
from mnemosyned.text.secrets.masking import (
    SCANNED_SECRETS_MAX,
    KnownSecrets,
    mask_secrets,
)

VALUES = st.text(st.sampled_from("aB1-é"), min_size=1, max_size=9)
KINDS = st.sampled_from((DetailKind.PASSWORD, DetailKind.API_KEY, DetailKind.EMAIL))
DETAILS = st.lists(st.builds(Detail, KINDS, VALUES, st.booleans()), max_size=60)


@given(DETAILS, st.lists(VALUES, max_size=20))
def test_many_known_secrets_are_masked_as_one_by_one(
    known: list[Detail], words: list[str]
) -> None:
    text = " ".join([*words, *(detail.value for detail in known[:5])])

    assert KnownSecrets(known).mask(text) == mask_secrets(text, known)


def test_only_those_that_stand_in_a_text_are_searched_for() -> None:
    many = [
        Detail(DetailKind.PASSWORD, f"Xq{n:05}zK", sensitive=True)
        for n in range(SCANNED_SECRETS_MAX * 100)
    ]

    shown = KnownSecrets(many).mask("it was Xq00007zK, not xXq00008zKx or Xq00009")

    assert shown == "it was [secret:password], not x[secret:password]x or Xq00009"
