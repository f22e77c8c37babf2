"""The device config of p4emu: P4 sources, from which the switch compiles for itself.

A bundle is either the text of one P4 file in UTF-8, or a zip archive of several with a
`manifest.json`:

    {"main": "p4/allreduce.p4", "defines": {"INA_LANES": "64"}, "include": ["p4/include"]}

`main` is the file to compile, `defines` and `include` (both may be left out) what -D and -I are to
a C compiler; all names are relative to the archive's root. Equal sources make equal bundles.
core.p4 and v1model.p4 are p4emu's own and not in it. Needs no gRPC and compiles nothing.

Main types: `make_bundle`, `pack`, `unpack`, `Sources`.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any

MAX_BYTES = 16 << 20
"""Of all sources together, unpacked: far beyond any P4 program, small enough to keep in memory."""

MAX_FILES = 1000
"""In one archive."""

_MANIFEST = "manifest.json"
_ZIP_MAGIC = b"PK"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The oldest time a zip archive can hold: times would make equal sources differ."""


class BundleError(ValueError):
    """A device config that is no bundle; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What there is to compile: the arguments of `p4emu.compile`."""

    main: Path
    defines: Mapping[str, str] = field(default_factory=dict)
    include: Sequence[Path] = ()


def make_bundle(
    path: str | PathLike[str],
    *,
    defines: Mapping[str, str] | None = None,
    include: Sequence[str | PathLike[str]] = (),
) -> tuple[Any, bytes]:
    """What `SetForwardingPipelineConfig` takes for a P4 program.

    Parameters
    ----------
    path, defines, include
        As for `p4emu.compile`.

    Returns
    -------
    p4info : p4.config.v1.p4info_pb2.P4Info
    device_config : bytes

    Raises
    ------
    CompileError
        The program has errors.
    OSError
        A file cannot be read.
    """
    from p4emu.frontend import check
    from p4emu.p4info import p4info

    sources = Sources(Path(path), dict(defines or {}), [Path(folder) for folder in include])
    checked = check(sources.main, include=sources.include, defines=sources.defines)
    return p4info(checked), pack(sources)


def pack(sources: Sources) -> bytes:
    """Bundle a program: its file, and those that it includes.

    Raises
    ------
    CompileError
        A file that is included is missing.
    OSError
        A file cannot be read.
    """
    files = _read_files(sources)
    if len(files) == 1 and not sources.defines:
        return sources.main.read_bytes()
    main = Path(os.path.abspath(sources.main))
    # Folders keep their relative places, so that every #include finds the same file again.
    folders = [Path(os.path.abspath(folder)) for folder in sources.include]
    used = [folder for folder in folders if any(folder in file.parents for file in files)]
    root = Path(os.path.commonpath([main.parent, *used, *(file.parent for file in files)]))
    manifest = {
        "main": main.relative_to(root).as_posix(),
        "defines": dict(sources.defines),
        "include": [folder.relative_to(root).as_posix() for folder in used],
    }
    contents = {file.relative_to(root).as_posix(): data for file, data in files.items()}
    if _MANIFEST in contents:
        raise OSError(f"{root / _MANIFEST}: a source cannot have the manifest's name")
    contents[_MANIFEST] = json.dumps(manifest, sort_keys=True, indent=1).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in sorted(contents):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, contents[name])
    return packed.getvalue()


def unpack(config: bytes, folder: Path) -> Sources:
    """Write a bundle's sources into an empty folder.

    Raises
    ------
    BundleError
        It is no bundle, or it would not stay within the folder or the limits of this module.
    """
    if not config:
        raise BundleError("the device config is empty; it holds the P4 source for p4emu")
    if len(config) > MAX_BYTES:
        raise BundleError(f"the device config has {len(config)} bytes, more than {MAX_BYTES}")
    if not config.startswith(_ZIP_MAGIC):
        try:
            text = config.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BundleError(
                "the device config is neither UTF-8 text (a P4 source) nor a zip archive of P4 "
                f"sources ({error.reason} at byte {error.start}); p4emu compiles P4 sources and "
                "takes no compiler's output"
            ) from None
        main = folder / "program.p4"
        main.write_text(text, encoding="utf-8", newline="")
        return Sources(main)
    files = _read_archive(config)
    for name, data in files.items():
        target = folder / _safe(name)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except (OSError, ValueError) as error:
            raise BundleError(f"{name!r} in the bundle cannot be unpacked: {error}") from None
    return _read_manifest(files, folder)


def _read_files(sources: Sources) -> dict[Path, bytes]:
    """The files that compiling reads, by absolute path, without p4emu's own."""
    from p4emu.frontend.diagnostics import Diagnostics
    from p4emu.frontend.preprocess import INCLUDE_DIRECTORY, preprocess

    names: dict[str, list[str]] = {}
    preprocess(
        sources.main.read_text(encoding="utf-8-sig"),
        str(sources.main),
        include=sources.include,
        defines=sources.defines,
        diagnostics=Diagnostics(names),
        files=names,
    )
    paths = {Path(os.path.abspath(name)) for name in names}
    paths.add(Path(os.path.abspath(sources.main)))
    return {
        path: path.read_bytes()
        for path in sorted(paths)
        if path.is_file() and INCLUDE_DIRECTORY not in path.parents
    }


def _read_archive(config: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(config)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if len(entries) > MAX_FILES:
                raise BundleError(f"the bundle has {len(entries)} files, more than {MAX_FILES}")
            files: dict[str, bytes] = {}
            left = MAX_BYTES
            for entry in entries:
                # The sizes that an archive states need not be true.
                with archive.open(entry) as file:
                    data = file.read(left + 1)
                left -= len(data)
                if left < 0:
                    raise BundleError(f"the bundle unpacks to more than {MAX_BYTES} bytes")
                files[entry.filename] = data
            return files
    except BundleError:
        raise
    # zipfile has no one exception for archives that are broken, encrypted or compressed otherwise.
    except Exception as error:
        raise BundleError(
            f"the device config is a zip archive that cannot be read: {error}"
        ) from None


def _read_manifest(files: Mapping[str, bytes], folder: Path) -> Sources:
    if _MANIFEST not in files:
        raise BundleError(f"the bundle has no {_MANIFEST}")
    try:
        manifest = json.loads(files[_MANIFEST])
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{_MANIFEST} is not JSON: {error}") from None
    if not isinstance(manifest, dict):
        raise BundleError(f"{_MANIFEST} holds an object, got {type(manifest).__name__}")
    unknown = sorted(manifest.keys() - {"main", "defines", "include"})
    if unknown:
        raise BundleError(f"{_MANIFEST} has unknown fields: {', '.join(unknown)}")
    main, defines = manifest.get("main"), manifest.get("defines", {})
    include = manifest.get("include", [])
    if not isinstance(main, str) or main not in files:
        raise BundleError(f"main in {_MANIFEST} names a file of the bundle, got {main!r}")
    if not isinstance(defines, dict) or not all(isinstance(v, str) for v in defines.values()):
        raise BundleError(f"defines in {_MANIFEST} maps names to texts, got {defines!r}")
    if not isinstance(include, list) or not all(isinstance(name, str) for name in include):
        raise BundleError(f"include in {_MANIFEST} is a list of folders, got {include!r}")
    return Sources(folder / _safe(main), defines, [folder / _safe(name) for name in include])


def _safe(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name or "\\" in name:
        raise BundleError(f"{name!r} is not a name within the bundle")
    return path
