"""CDI files: whose count, what they may say, and how devices are found in them by name."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from boxes.cdi.edits import DeviceNode, Edits, Mount
from boxes.cdi.finding import find, list_names
from boxes.cdi.libraries import soname
from boxes.cdi.place import CdiError

KIND = "vendor.example/card"
NULL = {"path": "/dev/null"}
Write = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cdi").mkdir(mode=0o755)
    return tmp_path / "cdi"


@pytest.fixture
def write(folder: Path) -> Write:
    """write(CARDS, name, fields of the file): a CDI file in the folder."""

    def put(cards: Mapping[str, Any], name: str = "vendor.json", **fields: Any) -> Path:
        listed = [{"name": key, "containerEdits": edits} for key, edits in cards.items()]
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"cdiVersion": "0.6.0", "kind": KIND, "devices": listed, **fields}))
        file.chmod(0o644)
        return file

    return put


def refusal(folder: Path, name: str = f"{KIND}=0") -> str:
    with pytest.raises(CdiError) as raised:
        find([name], [str(folder)])
    assert raised.value.remedy and "\n" not in str(raised.value)
    return str(raised.value)


def node(path: str, host: str) -> DeviceNode:
    return DeviceNode(Path(path), Path(host))


def test_a_program_gets_what_its_devices_and_their_file_say(folder: Path, write: Write) -> None:
    write(
        {
            "0": {"deviceNodes": [{"path": "/dev/c0", "hostPath": "/dev/zero"}], "env": ["CARD=0"]},
            "1": {"deviceNodes": [{"path": "/dev/c1", "hostPath": "/dev/full", "permissions": "r"}]},
        },
        annotations={"by": "hand"},
        containerEdits={
            "env": ["CARD=none", "VENDOR=a=b"],
            "deviceNodes": [{"path": "/dev/null", "type": "c", "major": 1, "minor": 3, "fileMode": 438}],
            "mounts": [
                {"hostPath": "/etc/hostname", "containerPath": "/etc/vendor", "options": ["ro", "nosuid", "rbind"]},
                {"hostPath": "/etc", "containerPath": "/vendor", "options": ["rw"], "type": "bind"},
            ],
        },
    )
    common = [Mount(Path("/etc/vendor"), Path("/etc/hostname")), Mount(Path("/vendor"), Path("/etc"), is_writable=True)]
    null = DeviceNode(Path("/dev/null"), Path("/dev/null"), (1, 3))

    one = find([f"{KIND}=0"], [str(folder)])
    assert one == Edits({"CARD": "0", "VENDOR": "a=b"}, [null, node("/dev/c0", "/dev/zero")], common)
    both = find([f"{KIND}=0", f"{KIND}=1", f"{KIND}=0"], [str(folder)])
    last = DeviceNode(Path("/dev/c1"), Path("/dev/full"), permissions="r")
    assert both == Edits(one.environment, [*one.nodes, last], common)
    assert find([f"{KIND}=all"], [str(folder)]) == both
    assert find([], [str(folder)]) == Edits()


def test_all_is_what_a_file_says_it_is(folder: Path, write: Write) -> None:
    write({"0": {"env": ["A=0"]}, "all": {"env": ["A=all"]}})

    assert find([f"{KIND}=all"], [str(folder)]).environment == {"A": "all"}


def test_a_later_folder_counts_and_two_files_of_one_are_refused(folder: Path, write: Write, tmp_path: Path) -> None:
    write({"0": {"env": ["A=first"]}, "1": {"env": ["A=one"]}})
    write({"0": {"env": ["A=second"]}}, "../run/vendor.json")
    folders = [str(folder), str(tmp_path / "run"), "/no/such/folder"]
    assert find([f"{KIND}=0"], folders).environment == {"A": "second"}
    assert find([f"{KIND}=1"], folders).environment == {"A": "one"}

    write({"0": {}}, "other.json")
    assert find([f"{KIND}=0"], folders).environment == {"A": "second"}
    assert "the device vendor.example/card=0 stands in " in refusal(folder)
    assert "vendor.example/card=0" not in list_names([str(folder)]), "nobody gets it who does not name it"
    write({"5": {}}, "other.json", kind="Bad kind")
    assert find([f"{KIND}=1"], folders).environment == {"A": "one"}, "a bad file is in nobody's way"


HOOK = {"hookName": "createContainer", "path": "/usr/bin/nvidia-ctk", "args": ["nvidia-ctk", "hook", "update-ldcache"]}


def test_hooks_of_nvidia_for_libraries_are_left_out_and_no_other(folder: Path, write: Write) -> None:
    newer = {"hookName": "createContainer", "path": "/usr/bin/nvidia-cdi-hook", "args": ["x", "create-symlinks"]}
    write({"0": {"deviceNodes": [NULL], "hooks": [HOOK, newer], "additionalGids": [44]}})
    assert find([f"{KIND}=0"], [str(folder)]).nodes == [node("/dev/null", "/dev/null")]

    for bad in ({**HOOK, "path": "/usr/bin/other"}, {**HOOK, "args": ["nvidia-ctk", "hook", "delete-all"]}):
        write({"0": {"hooks": [HOOK, bad]}})
        assert f"hooks[1] runs {bad['path']}, and boxes run no program of a CDI file" in refusal(folder)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"cdiVersion": "2.0.0"}, "vendor.json: cdiVersion is not a version that boxes know"),
        ({"cdiVersion": 1}, "vendor.json: cdiVersion is not"),
        ({"kind": "card"}, "vendor.json: kind is not VENDOR/CLASS"),
        ({"devices": []}, "vendor.json: devices names no device"),
        ({"devices": [{"name": "a b", "containerEdits": {}}]}, "devices[0].name is not a name"),
        ({"devices": [{"name": "0"}]}, "devices[0].containerEdits is missing"),
        ({"devices": [{"name": "0", "containerEdits": {}}] * 2}, "devices names no device, or one twice"),
        ({"devices": {"0": {}}}, "devices is not a list"),
        ({"netDevices": []}, "vendor.json: netDevices is a field that boxes do not know"),
        ({"containerEdits": {"intelRdt": {}}}, "containerEdits.intelRdt is a field that boxes do not know"),
        ({"containerEdits": []}, "containerEdits is not a JSON object"),
        ({"containerEdits": {"env": ["A"]}}, "containerEdits.env[0] is not NAME=VALUE"),
        ({"containerEdits": {"deviceNodes": [{}]}}, "deviceNodes[0].path is missing"),
        ({"containerEdits": {"deviceNodes": [{"path": "dev/null"}]}}, "path is not an absolute path"),
        ({"containerEdits": {"deviceNodes": [{"path": "/dev/../x"}]}}, "path is not an absolute path"),
        ({"containerEdits": {"deviceNodes": [{"path": "/dev/null", "type": "p"}]}}, "type is none of b, c and u"),
        (
            {"containerEdits": {"deviceNodes": [{"path": "/dev/null", "permissions": "x"}]}},
            "permissions is not of r, w and m",
        ),
        ({"containerEdits": {"deviceNodes": [{"path": "/dev/null", "major": "1"}]}}, "is not a whole number"),
        ({"containerEdits": {"mounts": [{"hostPath": "/etc"}]}}, "mounts[0].containerPath is missing"),
        ({"containerEdits": {"mounts": [{"hostPath": "/etc", "containerPath": "/"}]}}, "leave as it is"),
        (
            {"containerEdits": {"mounts": [{"hostPath": "/proc/1", "containerPath": "/x"}]}},
            "hostPath is /proc/1, which",
        ),
        (
            {"containerEdits": {"mounts": [{"hostPath": "/etc", "containerPath": "/x", "type": "tmpfs"}]}},
            "mounts[0].type is not bind",
        ),
        (
            {"containerEdits": {"mounts": [{"hostPath": "/etc", "containerPath": "/x", "options": ["idmap"]}]}},
            "mounts[0].options has 'idmap', which boxes do not know",
        ),
        (
            {"containerEdits": {"mounts": [{"hostPath": "/no/lib.so", "containerPath": "/x"}]}},
            "mounts[0] names /no/lib.so, which is not there: an operator writes the file anew",
        ),
        (
            {"containerEdits": {"deviceNodes": [{"path": "/dev/no"}]}},
            "deviceNodes[0] names /dev/no, which is not there: an operator writes the file anew",
        ),
        ({"containerEdits": {"deviceNodes": [{"path": "/etc/hostname"}]}}, "/etc/hostname, which is not a device file"),
        ({"containerEdits": {"deviceNodes": [{"path": "/dev/null", "major": 1, "minor": 5}]}}, "has another number"),
        (
            {"containerEdits": {"deviceNodes": [NULL, {"path": "/dev/null", "hostPath": "/dev/zero"}]}},
            "are both for /dev/null",
        ),
    ],
)
def test_what_boxes_do_not_know_is_refused_by_file_and_field(
    folder: Path, write: Write, fields: dict[str, Any], said: str
) -> None:
    write({"0": {}}, **fields)

    assert said in refusal(folder)


def test_what_is_no_cdi_file_is_told(folder: Path, write: Write) -> None:
    file = write({"0": {}})
    assert "this machine has no device vendor.example/card=7: it has vendor.example/card=0" in refusal(
        folder, f"{KIND}=7"
    )
    assert "'card' does not name a device: name one as VENDOR/CLASS=NAME" in refusal(folder, "card")
    for content in (b"{", b"\xff\xfe", b"[" * 100_000):
        file.write_bytes(content)
        assert f"and {file} is not JSON" in refusal(folder)
    file.write_text("[]")
    assert "vendor.json is not a JSON object" in refusal(folder)
    file.rename(folder / "vendor.yaml")
    assert "vendor.yaml is YAML, which boxes do not read: write vendor.json" in refusal(folder)
    file.symlink_to("gone")
    assert "vendor.json cannot be read (No such file or directory)" in refusal(folder)


def test_what_others_may_write_is_refused(folder: Path, write: Write) -> None:
    file = write({"0": {}})
    for mode in (0o666, 0o664):
        file.chmod(mode)
        assert f"others than root may write {file}: give it to root, with mode 0644" in refusal(folder)
    file.chmod(0o644)
    for one in (folder, folder.parent):
        one.chmod(0o775)
        assert f"others than root may write {one}: give it to root, with mode 0755" in refusal(folder)
        one.chmod(0o755)
    find([f"{KIND}=0"], [str(folder)])


def test_what_belongs_to_others_is_refused_through_a_link_too(folder: Path, write: Write, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    file = write({"0": {}})
    real = tmp_path / "theirs.json"
    file.rename(real)
    file.symlink_to(real)
    find([f"{KIND}=0"], [str(folder)])
    os.chown(real, 65534, 65534)

    assert f"others than root may write {real}" in refusal(folder)


def test_what_lies_in_a_closed_folder_is_told(folder: Path, write: Write) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    with TemporaryDirectory() as place:
        Path(place, "lib.so").touch()
        file = write({"0": {"mounts": [{"hostPath": f"{place}/lib.so", "containerPath": "/x"}]}})
        with TemporaryDirectory() as opened:
            Path(opened).chmod(0o755)
            file.rename(Path(opened, file.name))
            os.seteuid(65534)
            try:
                said = refusal(Path(opened))
            finally:
                os.seteuid(0)

    assert f"names {place}/lib.so, which lies in a folder that is closed: let all search it" in said


def test_a_library_tells_by_which_name_programs_ask_for_it(tmp_path: Path) -> None:
    source, library, plain = tmp_path / "a.c", tmp_path / "liba.so.1.2.3", tmp_path / "libplain.so"
    source.write_text("int one(void) { return 1; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,liba.so.1", "-o", library, source], check=True)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", plain, source], check=True)

    assert (soname(library), soname(plain), soname(source), soname(tmp_path)) == ("liba.so.1", "", "", "")
    whole = library.read_bytes()
    for length in (0, 5, 40, 60, 100, 300, len(whole) // 2):
        plain.write_bytes(whole[:length])
        assert soname(plain) in ("", "liba.so.1")
