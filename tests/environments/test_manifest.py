"""What is known of an environment stays the same wherever it is read, and what is damaged is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.errors import EnvError
from environments.manifest import Manifest, Package, Part, Requires, needs
from environments.reference import Reference, version_key

SHA256 = st.text("0123456789abcdef", min_size=64, max_size=64)
NAMES = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True)
VERSIONS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,10}", fullmatch=True)
MANIFESTS = st.builds(
    Manifest,
    name=NAMES,
    version=VERSIONS,
    python=st.just("3.11"),
    parts=st.lists(
        st.builds(Part, at=st.sampled_from(["/", "/opt/env", "/opt/more"]), sha256=SHA256, size_bytes=st.integers(0)),
        min_size=1,
        unique_by=lambda part: part.at,
    ),
    requires=st.builds(
        Requires, cpu_flags=st.lists(st.sampled_from(["avx", "avx2"])), cuda=st.sampled_from(["", "12.1"])
    ),
    variables=st.dictionaries(st.sampled_from(["PATH", "LANG"]), st.text()),
    packages=st.lists(st.builds(Package, name=NAMES, version=VERSIONS, file=NAMES, sha256=SHA256)),
)
GOOD = Manifest("torch", "1.13", "3.11", [Part("/opt/env", "a" * 64, 5)])


@given(manifest=MANIFESTS)
def test_a_manifest_is_read_as_it_was_written(manifest: Manifest) -> None:
    read = Manifest.from_bytes(manifest.to_bytes(), "m.json")

    assert (read, read.digest) == (manifest, manifest.digest)


@pytest.mark.parametrize(
    "change",
    [
        {"parts": []},
        {"parts": [{"at": "/opt/../etc", "sha256": "a" * 64, "size_bytes": 1}]},
        {"parts": [{"at": "opt/env", "sha256": "a" * 64, "size_bytes": 1}]},
        {"parts": [{"at": "/opt/env/", "sha256": "a" * 64, "size_bytes": 1}]},
        {"parts": [{"at": "/opt/env", "sha256": "../../x", "size_bytes": 1}]},
        {"parts": [{"at": "/opt/env", "sha256": "a" * 64, "size_bytes": 1}] * 2},
        {"parts": 5},
        {"parts": [{"at": 5, "sha256": "a" * 64, "size_bytes": 1}]},
        {"packages": [{"name": "six", "version": "1", "file": "../../six.whl", "sha256": "a" * 64}]},
        {"packages": [{"name": "six", "version": "1", "file": "/etc/six.whl", "sha256": "a" * 64}]},
        {"packages": [{"name": "six", "version": "1", "file": "six.whl", "sha256": "../a"}]},
        {"name": "../torch"},
        {"version": "1/2"},
        {"format": 0},
        {"format": "1"},
        {"format": None},
        {"parts": [[]]},
        {"requires": None},
    ],
)
def test_a_manifest_that_a_box_could_not_lay_out_is_refused_and_named(change: dict[str, object]) -> None:
    body = json.loads(GOOD.to_bytes()) | change

    with pytest.raises(EnvError, match=r"m\.json|names no environment") as refused:
        Manifest.from_bytes(json.dumps(body).encode(), "m.json")
    assert "newer" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 2}, "in format 2, and this nodewise reads format 1"),
        ({"format": 7, "parts": {"in": "a form of its own"}}, "in format 7, and this nodewise reads format 1"),
        ({"more": 1}, "it has more, and"),
        ({"parts": [{"at": "/", "sha256": "a" * 64, "size_bytes": 1, "codec": "x"}]}, "it has codec, and"),
        (
            {"requires": {"architecture": "", "cpu_flags": [], "cuda": "", "driver": "", "rocm": ""}},
            "it has rocm, and",
        ),
    ],
)
def test_a_manifest_of_a_newer_nodewise_is_called_so(change: dict[str, object], said: str) -> None:
    body = json.loads(GOOD.to_bytes()) | change

    with pytest.raises(EnvError, match=r"^m\.json was written by a newer nodewise") as refused:
        Manifest.from_bytes(json.dumps(body).encode(), "m.json")
    assert said in refused.value.message and refused.value.remedy == "update nodewise on this machine"


@pytest.mark.parametrize("version", ["twelve", "12.", "12.1 ", "v12", "١٢"])
def test_what_is_no_version_is_refused(version: str) -> None:
    for cuda, driver in ((version, ""), ("", version)):
        with pytest.raises(EnvError, match="is not a version of"):
            needs(cuda, driver, ())


@pytest.mark.parametrize("text", ["", "@1", "torch@", "Torch@1", "torch@1@2", "a/b", "torch@1 2", "torch\n"])
def test_what_names_no_environment_is_refused(text: str) -> None:
    with pytest.raises(EnvError, match="names no environment"):
        Reference.parse(text)


@given(versions=st.lists(VERSIONS))
def test_versions_can_always_be_sorted(versions: list[str]) -> None:
    sorted(versions, key=version_key)


@given(numbers=st.lists(st.integers(0, 10**30), min_size=2, max_size=2), zeros=st.integers(0, 3))
def test_numbers_in_versions_are_compared_as_numbers(numbers: list[int], zeros: int) -> None:
    one, other = numbers
    keys = [version_key(f"1.{'0' * zeros}{one}"), version_key(f"1.{other}")]

    assert (keys[0] < keys[1], keys[0] == keys[1]) == (one < other, one == other)


def test_numbers_of_any_length_are_compared() -> None:
    longer, shorter = "1" * 5001, "9" * 5000

    assert version_key(longer) > version_key(shorter) > version_key("2")
