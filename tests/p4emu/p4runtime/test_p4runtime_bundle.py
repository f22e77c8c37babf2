"""Bundles: what is packed is compiled as if in place, and nothing else is believed."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path

import pytest
from p4runtime_rig import OBJECTS

from p4emu.p4runtime import bundle
from p4emu.p4runtime.bundle import BundleError, Sources, make_bundle, pack, unpack


def zipped(**files: str | bytes) -> bytes:
    """An archive of files, with "_" for "." in their names."""
    return archive({name.replace("_", "."): content for name, content in files.items()})


def archive(files: dict[str, str | bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return data.getvalue()


def multi_file(root: Path) -> Sources:
    """Three folders; the program includes across all of them and needs a macro."""
    (root / "main").mkdir(parents=True)
    (root / "shared").mkdir()
    (root / "inc" / "deep").mkdir(parents=True)
    (root / "unused").mkdir()
    text = OBJECTS.read_text()
    head, rest = text.split("header key_t {")
    fields, tail = rest.split("}", 1)
    includes = '#include "../shared/key.p4"\n#include <deep/size.p4>\n'
    (root / "main" / "prog.p4").write_text(
        head + includes + tail.replace("size = 4;", "size = EXACT_SIZE;")
    )
    (root / "shared" / "key.p4").write_text(f"header key_t {{{fields}}}\n")
    (root / "inc" / "deep" / "size.p4").write_text("#define EXACT_SIZE (BASE + 1)\n")
    return Sources(root / "main" / "prog.p4", {"BASE": "4"}, [root / "unused", root / "inc"])


def test_a_single_file_is_its_own_bundle(tmp_path: Path) -> None:
    data = pack(Sources(OBJECTS))
    assert data == OBJECTS.read_bytes()
    assert unpack(data, tmp_path).main.read_bytes() == data


def test_a_program_of_several_files_compiles_from_its_bundle_as_in_place(tmp_path: Path) -> None:
    sources = multi_file(tmp_path / "here")
    info, data = make_bundle(sources.main, defines=sources.defines, include=sources.include)
    size = {t.preamble.name: t.size for t in info.tables}["I.exact_table"]
    assert size == 5
    (tmp_path / "there").mkdir()
    unpacked = unpack(data, tmp_path / "there")
    again, same = make_bundle(unpacked.main, defines=unpacked.defines, include=unpacked.include)
    assert again == info
    assert same == data  # equal sources, wherever they are
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert sorted(archive.namelist()) == [
            "inc/deep/size.p4", "main/prog.p4", "manifest.json", "shared/key.p4",
        ]  # fmt: skip
        assert json.loads(archive.read("manifest.json")) == {
            "main": "main/prog.p4", "defines": {"BASE": "4"}, "include": ["inc"],
        }  # fmt: skip


def test_a_macro_alone_makes_an_archive(tmp_path: Path) -> None:
    unpacked = unpack(pack(Sources(OBJECTS, {"A": "1"})), tmp_path)
    assert unpacked.defines == {"A": "1"}
    assert unpacked.main.read_bytes() == OBJECTS.read_bytes()


MAIN = '{"main": "a.p4"}'


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (b"", "is empty"),
        (b"\xff\xfe\x00", "neither UTF-8 text"),
        (b"PK\x03\x04 no archive", "cannot be read"),
        (zipped(a_p4=b"")[:-4], "cannot be read"),
        (zipped(a_p4=b""), "no manifest.json"),
        (zipped(a_p4=b"", manifest_json=b"{"), "not JSON"),
        (zipped(a_p4=b"", manifest_json=b"[" * 100_000), "not JSON"),
        (zipped(a_p4=b"", manifest_json=b"\xff"), "not JSON"),
        (zipped(a_p4=b"", manifest_json=b"[]"), "holds an object, got list"),
        (zipped(a_p4=b"", manifest_json=b"{}"), "names a file of the bundle, got None"),
        (zipped(b_p4=b"", manifest_json=MAIN), "names a file of the bundle, got 'a.p4'"),
        (zipped(a_p4=b"", manifest_json=b'{"main": "a.p4", "define": {}}'), "fields: define"),
        (zipped(a_p4=b"", manifest_json=b'{"main": "a.p4", "defines": {"A": 1}}'), "to texts"),
        (zipped(a_p4=b"", manifest_json=b'{"main": "a.p4", "include": "x"}'), "list of folders"),
        (zipped(a_p4=b"", manifest_json=b'{"main": "a.p4", "include": [".."]}'), "'..' is not"),
        (
            archive({"a.p4": "", "../x": "", "manifest.json": MAIN}),
            "is not a name within the bundle",
        ),
        (
            archive({"a.p4": "", "/etc/x": "", "manifest.json": MAIN}),
            "'/etc/x' is not a name within",
        ),
        (archive({"a.p4": "", "a.p4/b": "", "manifest.json": MAIN}), "cannot be unpacked"),
    ],
)
def test_what_is_no_bundle_is_refused_with_the_reason(
    config: bytes, message: str, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(BundleError, match=re.escape(message)):
        unpack(config, folder)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_archives_that_unpack_to_too_much_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "MAX_BYTES", 10_000)
    big = io.BytesIO()
    with zipfile.ZipFile(big, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.p4", bytes(6_000))
        archive.writestr("b.p4", bytes(6_000))
    assert len(big.getvalue()) < 1_000
    with pytest.raises(BundleError, match="unpacks to more than 10000 bytes"):
        unpack(big.getvalue(), tmp_path)
    monkeypatch.setattr(bundle, "MAX_FILES", 1)
    with pytest.raises(BundleError, match="2 files, more than 1"):
        unpack(big.getvalue(), tmp_path)
    with pytest.raises(BundleError, match="more than 10000"):
        unpack(b"a" * 10_001, tmp_path)
