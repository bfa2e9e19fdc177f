from itertools import product
from time import process_time

import pytest
from hypothesis import given, strategies as st
from support.cases import each_case

from mnemosyned.text.secrets import formats as secret_forms, names as secret_names
from mnemosyned.text.secrets.formats import Secret
from mnemosyned.text.secrets.masking import (
    TOO_DEEP,
    find_secrets,
    mask_metadata,
    mask_secrets,
)

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
        patch.setattr(
            secret_names, "_find_name_windows", lambda low: [("", 0, len(low))]
        )
        patch.setattr(secret_forms, "TOKEN_HINTS", {"": ("",)})
        return find_secrets(text)


@each_case("form", FORMS)
def test_every_form_of_a_secret_passes_its_hints(form: str) -> None:
    texts = [f"see {form}{value} there" for value in VALUES]

    assert any(map(without_hints, texts))
    assert [find_secrets(text) for text in texts] == [
        without_hints(text) for text in texts
    ]


@each_case("word", WORDS)
def test_every_word_before_a_secret_passes_its_hints(word: str) -> None:
    texts = [f"the {word}{link}{value}." for link, value in product(LINKS, VALUES)]

    assert any(map(without_hints, texts))
    assert [find_secrets(text) for text in texts] == [
        without_hints(text) for text in texts
    ]


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
def test_a_text_of_nothing_but_beginnings_of_secrets_takes_time_by_its_length(
    repeated: str,
) -> None:
    def seconds(chars: int) -> float:
        text = (repeated * chars)[:chars]
        times = []
        for _ in range(5):
            start = process_time()
            mask_secrets(text)
            times.append(process_time() - start)
        return min(times)

    assert seconds(64_000) < 3 * 64 * seconds(1_000)


def test_a_long_key_is_masked_whole_wherever_its_name_is_repeated() -> None:
    key = "Zq7xK9vB2mT4Hw8c" * 40

    assert mask_secrets(f"token={key} and token=token={key}.") == (
        "token=[secret:token] and token=[secret:token]."
    )


def test_a_web_token_after_what_only_begins_like_one_is_found() -> None:
    token = f"eyJ{'aB3' * 6}.{'cD4' * 6}"

    assert mask_secrets(f"eyJshort eyJ-{'x' * 20} {token}") == (
        f"eyJshort eyJ-{'x' * 20} [secret:jwt]"
    )


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


def test_a_number_with_a_unit_of_another_script_is_no_code() -> None:
    for text in ("PIN 2026年启用", "verification code: 2026年3月", "PINは4桁です"):
        assert mask_secrets(text) == text


@each_case("text", [
    "on 2026-03-09, 4111-1111-1111-1111", "2026-03-09 2026-03-10 123-45-6789",
    "4111111111111111 of 2026-03-09",
])  # fmt: skip
def test_a_number_beside_a_date_is_found(text: str) -> None:
    assert find_secrets(text)


def test_a_date_is_no_number() -> None:
    assert find_secrets("2026-03-09 08:15, 2026-03-10 09:15 and 2026-03-11 10") == []
