"""The doctor: each check on this machine, and what it says when something is wrong."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from pycollective import doctor


def test_a_machine_that_runs_these_tests_is_healthy(capsys: pytest.CaptureFixture[str]) -> None:
    status = doctor.run()
    said = capsys.readouterr().out
    assert status == 0, said
    assert all(name in said for name, _ in doctor.CHECKS)


def test_what_is_wrong_is_said_with_a_remedy_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> str:
        raise doctor.Problem("the wheel is [flat]", "pump it up")

    assert doctor.run((("wheel", broken),)) == 1
    said = capsys.readouterr().out
    assert "wheel: the wheel is [flat]" in said
    assert "do: pump it up" in said


def test_advice_does_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    def slow() -> str:
        raise doctor.Advice("slow", "hurry")

    assert doctor.run((("wheel", slow),)) == 0
    assert "do: hurry" in capsys.readouterr().out


def test_a_check_that_fails_unexpectedly_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken() -> str:
        raise RuntimeError("surprise")

    assert doctor.run((("one", broken), ("two", lambda: "fine"))) == 1
    said = capsys.readouterr().out
    assert "RuntimeError: surprise" in said
    assert "two: fine" in said


def test_a_missing_core_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def without_core(name: str) -> object:
        if name == "pycollective._core":
            raise ImportError("no such file")
        return real(name)

    monkeypatch.setattr(importlib, "import_module", without_core)
    with pytest.raises(doctor.Problem, match="does not import: no such file") as caught:
        doctor.check_core()
    assert "make install" in caught.value.remedy


def test_a_program_with_an_error_is_found_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "broken.p4"
    program.write_text("header h_t { bit<8> a }\n")
    monkeypatch.setattr("pycollective.switch_process.default_program", lambda: program)
    with pytest.raises(doctor.Problem, match=r"broken\.p4:1:"):
        doctor.check_program()
