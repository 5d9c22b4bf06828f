from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlexp.system import install as installing


def test_uv_is_told_what_pip_is_set_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_", "SSL_CERT"))]:
        monkeypatch.delenv(name)
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nindex-url = https://a/simple\nextra-index-url =\n  https://b\n  https://c\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("PIP_FIND_LINKS", "wheels")
    assert {
        "UV_DEFAULT_INDEX": "https://a/simple",
        "UV_INDEX": "https://b https://c",
        "UV_FIND_LINKS": "wheels",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }.items() <= installing._settings_of_pip().items()
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://own/simple")
    assert "UV_DEFAULT_INDEX" not in installing._settings_of_pip()


def test_pip_where_uv_fails_and_both_reasons_where_pip_fails_too(monkeypatch: pytest.MonkeyPatch) -> None:
    fails: set[str] = {"uv"}
    monkeypatch.setattr(
        installing, "_run", lambda *command, **_: "no" if (fails & set(command)) and "x" in command else None
    )
    assert installing.install("x") is None
    fails.add("pip")
    assert installing.install("x") == "uv: no\npip: no"
