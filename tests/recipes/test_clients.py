"""The clients of examples/clients write and read values of a real service, in plain and over https."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from infosvc.wire.client import InfoClient
from infosvc.wire.records import Kind, Producer
from tests.infosvc.conftest import TOKEN, Served, serving
from tests.infosvc.test_tls import Authority
from tests.recipes.pages import ROOT, block
from tests.recipes.shell import Shell, changed

pytestmark = pytest.mark.timeout(900)  # on a busy machine Java takes a minute to compile its client

PROGRAMS = ("python3 examples/clients/client.py", "sh examples/clients/client.sh", "java")
ODD = 'a "quoted" \\word'
PATIENCE_SECONDS = 240.0  # Java compiles its client first


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A caller's shell, with the token where `nodewise serve` leaves it."""
    made = Shell(tmp_path / "home", tmp_path / "work")
    token = made.home / ".nodewise" / "service" / "token"
    token.parent.mkdir(parents=True)
    token.write_text(TOKEN + "\n")
    return made


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client in Java, compiled once; as the page runs it, it is compiled for each call."""
    made = tmp_path_factory.mktemp("classes")
    subprocess.run(["javac", "-d", made, ROOT / "examples/clients/Client.java"], check=True, timeout=PATIENCE_SECONDS)
    return made


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest, classes: Path) -> str:
    """How each client is called."""
    return f"java -cp {classes} Client" if request.param == "java" else str(request.param)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    """A service that knows nothing."""
    with serving(f"sqlite:///{tmp_path / 'infosvc.db'}") as served:
        yield served


def test_the_recipe_writes_and_reads_in_each_language(shell: Shell, service: Served) -> None:
    shell.settings["NODEWISE_URL"] = service.url
    register, *calls = block("clients").splitlines()
    shell.run(register)

    assert len(calls) == 3
    for line, language in zip(calls, ("Python", "the shell", "Java"), strict=True):
        said = shell.run(changed(line, ("http://127.0.0.1:8400", service.url)))
        assert f"from {language}" in said and "fresh" in said
        assert service.client.data("note")[0].data_value == f"from {language}"


def test_the_client_in_java_says_what_is_wrong_in_a_line(tmp_path: Path, classes: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    compiled, source = ("-cp", str(classes), "Client"), (str(ROOT / "examples/clients/Client.java"),)
    refused = "no service answers at http://127.0.0.1:1"
    for program, token, said in ((compiled, "token", refused), (source, "other", "there is no file")):
        words = ["java", *program, "http://127.0.0.1:1", str(tmp_path / token), "a", "n1", "1"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        assert done.returncode == 1
        assert done.stderr.startswith(said)
        assert len(done.stderr.splitlines()) == 1


def test_a_value_with_quotes_arrives_as_it_is(shell: Shell, service: Served, program: str) -> None:
    service.client.put_producer(Producer("note", "", 60, Kind.PROGRAM))

    said = shell.run(f"{program} {service.url} ~/.nodewise/service/token note n1 '{ODD}'")

    assert service.client.data("note")[0].data_value == ODD
    assert ODD in said or json.loads(said)["data_value"] == ODD


def test_a_client_written_before_the_rooms_works_unchanged(shell: Shell, service: Served, tmp_path: Path) -> None:
    service.client.put_producer(Producer("note", "", 60, Kind.PROGRAM))
    now = "from nodewise.client import InfoClient, InfoError\n"
    before = "from infosvc.client import InfoClient\nfrom infosvc.errors import InfoError\n"
    source = Path("examples/clients/client.py").read_text()
    (tmp_path / "client.py").write_text(changed(source, (now, before)))

    said = shell.run(f"python3 {tmp_path}/client.py {service.url} ~/.nodewise/service/token note n1 old")

    assert "old" in said and service.client.data("note")[0].data_value == "old"


def test_over_https_the_authority_is_a_file(shell: Shell, tmp_path: Path, program: str) -> None:
    authority = Authority(tmp_path / "ours")
    cert, key = authority.issue("service")
    database = f"sqlite:///{tmp_path / 'infosvc.db'}"
    with serving(database, tls_cert=str(cert), tls_key=str(key)) as secure:
        client = InfoClient(secure.url, TOKEN, ca_file=authority.file)
        client.put_producer(Producer("note", "", 60, Kind.PROGRAM))
        call = f"{program} {secure.url} ~/.nodewise/service/token note n1 safe"
        assert refused(shell, call)
        shell.settings["NODEWISE_CA_FILE"] = str(authority.file)
        said = shell.run(call)

        assert secure.url.startswith("https:") and "safe" in said
        assert client.data("note")[0].data_value == "safe"
        client.close()


def test_a_refusal_is_told_with_the_services_words(shell: Shell, service: Served, program: str) -> None:
    call = f"{program} {service.url} ~/.nodewise/service/token unknown n1 x"

    assert "unknown" in refused(shell, call)
    (shell.home / ".nodewise" / "service" / "token").write_text("no-token-of-this-service\n")
    assert "token" in refused(shell, call)


def refused(shell: Shell, call: str) -> str:
    """What a call says that must fail."""
    done = subprocess.run(
        ["bash", "-c", call],
        cwd=shell.folder,
        env=shell.environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode != 0 and TOKEN not in done.stdout + done.stderr
    return done.stdout + done.stderr
