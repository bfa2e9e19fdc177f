from itertools import product
from time import process_time

import pytest
from hypothesis import given, strategies as st
from support.cases import each_case

from mnemosyned.text.details import Detail, DetailKind, Secret
from mnemosyned.text.secrets import masking, prose
from mnemosyned.text.secrets.masking import (
    PLAIN_CHARS_MAX,
    PLAIN_MAX,
    PLAIN_TEXTS,
    SCANNED_SECRETS_MAX,
    TOO_DEEP,
    KnownSecrets,
    find_secrets,
    mask_metadata,
    mask_secrets,
)
from mnemosyned.text.word_cache import clear_word_caches

FORMS = (
    "AKIA", "ASIA", "ABIA", "ACCA", "A3T", "AIza", "eyJ", "SG.", "sk-", "xoxb-", "pypi-AgE",
    "sk_live_", "pk_test_", "hf_", "npm_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_",
    "glpat-", "gldt-", "glft-", "glsoat-", "glrt-", "glcbt-", "glptt-", "glagent-",
    "https://hooks.slack.com/services/", "-----BEGIN PRIVATE KEY-----",
)  # fmt: skip
WORDS = (
    "API key", "ToKen", "secret", "clave", "Bearer", "PASSWORD", "passwort", "passphrase",
    "pass phrase", "passcode", "passwd", "pwd", "Kennwort", "contrasena", "mot de passe", "senha",
    "wachtwoord", "api-schlüssel", "contraseña", "hasło", "Пароль", "密码", "密碼", "パスワード",
    "暗証番号",
)  # fmt: skip
LINKS = (": ", "=", " is ", "：", " ")
VALUES = (
    "Zq7xK9vB2mT4Hw8c",
    "A1B2" * 4,
    "A" + "A1B2" * 4,
    "A1B2C" * 9,
    f"{'aB3' * 6}.{'cD4' * 6}",
)
LETTERS = st.sampled_from(("a", "é", "İ", "\u212a", "\n", " "))


def without_hints(text: str) -> list[Secret]:
    """The secrets as the rules alone find them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prose, "_find_name_windows", lambda low: [("", 0, len(low))])
        patch.setattr(masking, "TOKEN_HINTS", {"": ("",)})
        found = find_secrets(text)
    PLAIN_TEXTS.clear()
    return found


@each_case("texts", [
    *([f"see {form}{value} there" for value in VALUES] for form in FORMS),
    *([f"the {word}{link}{value}." for link, value in product(LINKS, VALUES)] for word in WORDS),
])  # fmt: skip
def test_each_form_and_word_of_a_secret_passes_its_hints(texts: list[str]) -> None:
    found = [without_hints(text) for text in texts]

    assert any(found)
    assert [find_secrets(text) for text in texts] == found


@given(
    st.lists(LETTERS | st.sampled_from((*FORMS, *WORDS, *LINKS, *VALUES)), max_size=12)
)
def test_hints_hide_no_secret(parts: list[str]) -> None:
    text = "".join(parts)

    assert find_secrets(text) == without_hints(text)


REPEATED = (
    "token=", "api_key=", "key=1", "key=a1B2", "secret=1/", "eyJ-", "eyJaaaaaaaa-",
)  # fmt: skip


@pytest.mark.fault
@pytest.mark.parametrize("repeated", REPEATED)
def test_beginnings_of_secrets_take_time_by_their_length(repeated: str) -> None:
    def seconds(chars: int) -> float:
        text = (repeated * chars)[:chars]
        times = []
        for _ in range(5):
            start = process_time()
            mask_secrets(text)
            times.append(process_time() - start)
        return min(times)

    assert seconds(64_000) < 3 * 64 * seconds(1_000)


KEY = "Zq7xK9vB2mT4Hw8c" * 40
TOKEN = f"eyJ{'aB3' * 6}.{'cD4' * 6}"
SHORT = f"eyJshort eyJ-{'x' * 20}"


@each_case(("text", "masked"), [
    (f"token={KEY} and token=token={KEY}.", "token=[secret:token] and token=[secret:token]."),
    (f"{SHORT} {TOKEN}", f"{SHORT} [secret:jwt]"),
    # A number with a unit of another script is no code.
    ("PIN 2026年启用", "PIN 2026年启用"),
    ("verification code: 2026年3月", "verification code: 2026年3月"),
    ("PINは4桁です", "PINは4桁です"),
])  # fmt: skip
def test_a_secret_is_masked_whole(text: str, masked: str) -> None:
    assert mask_secrets(text) == masked


def test_metadata_nested_too_deeply_is_left_out_and_fails_nothing() -> None:
    deep: dict[str, object] = {"password": "larch-4471"}
    for _ in range(900):
        deep = {"inside": [deep]}

    shown = repr(mask_metadata({"near": {"password": "larch-4471"}, "far": deep}))

    assert TOO_DEEP in shown
    assert "larch" not in shown


@each_case("text", [
    "AKIA" + "IOSFODNN7EXAMPLE", "ghp_" + "a1B2c3D4e5" * 3, "glpat-" + "a1B2c3D4e5" * 2,
    "xoxb-" + "123456789012-abcdefGHIJKL", "sk-" + "a1B2c3D4e5" * 2, "hf_" + "a1B2c3D4e5" * 3,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3", "4111 1111 1111 1111", "078-05-1120",
    "DE89370400440532013000", "G-123456", "PIN: 4711", "verification code: 482913",
    "otp: JBSWY3DPEHPK3PXP", "password is Hunter22",
])  # fmt: skip
@each_case("around", ["是{}吧", "は{}です", "이건 {}입니다", "คือ{}ครับ"])
def test_a_secret_is_masked_whatever_script_it_touches(text: str, around: str) -> None:
    secret = text.rsplit(": ", maxsplit=1)[-1].removeprefix("password is ")
    before, after = around.split("{}")

    masked = mask_secrets(around.format(text))

    assert secret not in masked
    assert masked.startswith(before)
    assert masked.endswith(f"]{after}")


@each_case("text", [
    "on 2026-03-09, 4111-1111-1111-1111", "2026-03-09 2026-03-10 123-45-6789",
    "4111111111111111 of 2026-03-09",
])  # fmt: skip
def test_a_number_beside_a_date_is_found(text: str) -> None:
    assert find_secrets(text)
    assert not find_secrets("2026-03-09 08:15, 2026-03-10 09:15 and 2026-03-11 10")


WIDE = {code: code + 0xFEE0 for code in range(ord("!"), ord("~") + 1)}
PERSIAN, BOLD = (
    str.maketrans("0123456789", "".join(map(chr, range(first, first + 10))))
    for first in (0x6F0, 0x1D7CE)
)


@each_case(("text", "masked"), [
    ("card 4111 1111 1111 1111 ok", "card [secret:card_number] ok"),
    ("IBAN DE89370400440532013000.", "IBAN [secret:iban]."),
    ("use ghp_" + "a1B2c3D4e5" * 3, "use [secret:github_token]"),
    ("password: Hunter22", "password: [secret:password]"),
    ("暗証番号は4711です", "暗証番号は[secret:password]です"),
])  # fmt: skip
def test_a_secret_in_characters_of_full_width_is_masked(text: str, masked: str) -> None:
    assert mask_secrets(text) == masked

    before, _, after = masked.partition("[")
    placeholder, _, after = after.partition("]")
    wide = f"{before.translate(WIDE)}[{placeholder}]{after.translate(WIDE)}"
    assert mask_secrets(text.translate(WIDE)) == wide


@each_case("digits", [PERSIAN, BOLD])
def test_a_number_is_masked_whatever_its_digits(digits: dict[int, int]) -> None:
    text = "card 4111 1111 1111 1111 ok, PIN 4711, at 10:30".translate(digits)

    masked = "card [secret:card_number] ok, PIN [secret:access_code], at 10:30"
    assert mask_secrets(text) == masked.translate(digits)


# ------------------------------------- secrets of some texts in others


PARTS = st.text(st.sampled_from("aB1-é"), min_size=1, max_size=9)
KINDS = st.sampled_from((DetailKind.PASSWORD, DetailKind.API_KEY, DetailKind.EMAIL))
DETAILS = st.lists(st.builds(Detail, KINDS, PARTS, st.booleans()), max_size=60)


@given(DETAILS, st.lists(PARTS, max_size=20))
def test_many_secrets_are_masked_as_one(known: list[Detail], words: list[str]) -> None:
    text = " ".join([*words, *(detail.value for detail in known[:5])])

    assert KnownSecrets(known).mask(text) == mask_secrets(text, known)


def test_only_those_that_stand_in_a_text_are_searched_for() -> None:
    many = [
        Detail(DetailKind.PASSWORD, f"Xq{n:05}zK", sensitive=True)
        for n in range(SCANNED_SECRETS_MAX * 100)
    ]

    shown = KnownSecrets(many).mask("it was Xq00007zK, not xXq00008zKx or Xq00009")

    assert shown == "it was [secret:password], not x[secret:password]x or Xq00009"


def test_only_short_texts_without_secrets_are_remembered_until_something_is_forgotten() -> (
    None
):
    PLAIN_TEXTS.clear()
    secret, long = "the password is Zq7xK9vB2mT4", "x" * (PLAIN_CHARS_MAX + 1)

    found = [find_secrets(text) for text in ("plain", secret, long) * 2]

    assert found == [[], [Secret(DetailKind.PASSWORD, 16, 28)], []] * 2
    assert {"plain"} == PLAIN_TEXTS
    for number in range(PLAIN_MAX):
        find_secrets(f"memory {number}")
    assert {f"memory {PLAIN_MAX - 1}"} == PLAIN_TEXTS
    clear_word_caches()
    assert not PLAIN_TEXTS
