"""What a cluster with Kerberos or two masters needs before it starts: its realm, certificates, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509

from hadoop.errors import HadoopError
from hadoop.local import lifecycle, planning, site, state, variables
from hadoop.local.kerberos import asking, programs
from hadoop.local.state import Cluster
from tests.hadoop.hadoop_pages import Daemon, say


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    made = Cluster(tmp_path, "127.0.9", 1, "me", Path("/jars"), Path("/jvm/bin/java"), kerberos=True)
    made.logs.mkdir(parents=True)
    made.realm.prepare()
    return made


def keytabs(cluster: Cluster) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in cluster.realm.folder.rglob("*.keytab")}


def test_another_user_gets_a_keytab_and_the_others_keep_theirs(cluster: Cluster) -> None:
    before = keytabs(cluster)
    replace(cluster, principals=("alice",)).realm.prepare()

    after = keytabs(cluster)
    assert after.keys() - before.keys() == {"alice.keytab"}
    assert {name: after[name] for name in before} == before
    assert list(cluster.realm.folder.rglob("*.new")) == []


def test_another_node_gets_a_principal_and_the_certificate_of_daemons_that_run_stays(cluster: Cluster) -> None:
    certificate, before = cluster.realm.certificates.certificate.read_bytes(), keytabs(cluster)

    replace(cluster, size=2).realm.prepare()

    changed = {name for name, content in keytabs(cluster).items() if before[name] != content}
    assert changed == {"HTTP.keytab"}
    assert cluster.realm.certificates.certificate.read_bytes() == certificate


def test_a_start_in_a_shell_that_uses_the_cluster_adds_nothing_to_what_is_trusted(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    authorities = cluster.realm.certificates.authorities
    before = authorities.read_bytes()
    monkeypatch.setenv("SSL_CERT_FILE", str(authorities))

    cluster.realm.prepare()

    assert authorities.read_bytes() == before
    assert before.endswith(cluster.realm.certificates.certificate.read_bytes())


def test_a_start_in_a_shell_that_uses_the_cluster_leaves_that_shell_its_commands(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = cluster.realm.commands
    before = {file.name for file in commands.iterdir()}
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")

    cluster.realm.prepare()

    assert commands.parts[-3:] == programs.COMMANDS
    assert before == {file.name for file in commands.iterdir()}
    assert bool(before) == programs.is_unpacked(programs.find("kinit"))


def test_a_database_that_was_not_finished_is_made_anew_with_its_keytabs(cluster: Cluster) -> None:
    before = keytabs(cluster)
    (cluster.realm.folder / "database" / "stash").unlink()

    cluster.realm.prepare()

    after = keytabs(cluster)
    assert after.keys() == before.keys()
    assert [name for name in before if after[name] == before[name]] == []


def test_daemons_are_asked_whatever_a_user_has_set_for_curl(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".curlrc").write_text(f"output = {tmp_path}/elsewhere\n")
    monkeypatch.setenv("CURL_HOME", str(tmp_path))
    daemon = Daemon(lambda _: say({"beans": []}))
    try:
        assert asking.read_json(cluster.realm, f"{daemon.address}/jmx") == {"beans": []}
    finally:
        daemon.close()


def test_other_addresses_get_another_certificate(cluster: Cluster) -> None:
    moved = replace(cluster, subnet="127.0.8", size=2)
    moved.realm.prepare()

    made = x509.load_pem_x509_certificate(moved.realm.certificates.certificate.read_bytes())
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    certified = set(map(str, names.get_values_for_type(x509.IPAddress)))
    assert {"127.0.8.1", "127.0.8.2", "127.0.8.11", "127.0.8.12"} <= certified
    assert {one.rpartition(".")[0] for one in certified} == {"127.0.8"}


def test_what_this_machine_trusts_stays_trusted(cluster: Cluster) -> None:
    own = cluster.realm.certificates.certificate.read_text()
    assert cluster.realm.certificates.authorities.read_text().endswith(own)


def test_missing_programs_are_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "UNPACKED", tmp_path)
    monkeypatch.setattr(programs, "_SYSTEM", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        HadoopError, match=r"krb5kdc is missing.*: run scripts/setup --dev, or `apt-get install krb5-kdc"
    ):
        programs.check()


@pytest.mark.parametrize("name", ["Alice", "a b", "x@Y", "", "../x", "hdfs", "yarn"])
def test_names_that_cannot_be_users_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(HadoopError, match="--principal"):
        lifecycle.up(tmp_path, kerberos=True, principals=(name,))
    assert not (tmp_path / "cluster" / "kerberos").exists()


def test_options_of_kerberos_are_refused_without_it(tmp_path: Path) -> None:
    with pytest.raises(HadoopError, match="--principal means nothing without Kerberos: give --kerberos, too"):
        lifecycle.up(tmp_path, principals=("alice",))
    with pytest.raises(HadoopError, match="--protection means nothing without Kerberos"):
        lifecycle.up(tmp_path, protection="privacy")
    with pytest.raises(HadoopError, match="--token-life means nothing without Kerberos"):
        lifecycle.up(tmp_path, token_seconds=60)


def test_what_was_chosen_stays_until_it_is_chosen_anew(tmp_path: Path) -> None:
    first = planning.Wanted(kerberos=True, ha=True, principals=("alice",), protection="privacy")
    made = planning.plan(tmp_path, None, first)
    again = planning.plan(tmp_path, made, planning.Wanted(principals=("bob",)))

    assert (again.kerberos, again.ha, again.protection) == (True, True, "privacy")
    assert again.principals == ("alice", "bob")
    state.state_dir(tmp_path).mkdir()
    state.save(again)
    assert state.read(tmp_path) == again


@pytest.mark.parametrize(
    ("wanted", "option"),
    [
        (planning.Wanted(kerberos=False), "--kerberos"),
        (planning.Wanted(ha=True), "--ha"),
        (planning.Wanted(protection="privacy"), "--protection"),
        (planning.Wanted(token_seconds=60), "--token-life"),
        (planning.Wanted(principals=("carol",)), "--principal"),
    ],
)
def test_nothing_of_it_changes_under_daemons_that_run(tmp_path: Path, wanted: planning.Wanted, option: str) -> None:
    recorded = planning.plan(tmp_path, None, planning.Wanted(kerberos=True, principals=("alice",)))
    with pytest.raises(HadoopError, match=f"{option} cannot change while the cluster runs"):
        planning.refuse_moves(recorded, planning.plan(tmp_path, recorded, wanted))


@pytest.mark.parametrize("before", [True, False])
def test_file_systems_of_one_namenode_and_of_two_are_not_exchanged(tmp_path: Path, before: bool) -> None:
    made = planning.plan(tmp_path, None, planning.Wanted(ha=before))
    formatted = site.name_dir(made, made.master) / site.FORMATTED
    formatted.parent.mkdir(parents=True)
    formatted.touch()
    if before:
        site.journal(made).mkdir()

    assert planning.plan(tmp_path, made, planning.Wanted()).ha == before
    with pytest.raises(HadoopError, match=f"HDFS was made with{'' if before else 'out'} --ha and stays so"):
        planning.plan(tmp_path, made, planning.Wanted(ha=not before))


def test_a_shell_is_told_of_a_realm_only_where_there_is_one(cluster: Cluster) -> None:
    plain = replace(cluster, kerberos=False)
    assert variables.of(plain) == {"HADOOP_CONF_DIR": str(cluster.conf_dir)}
    with pytest.raises(HadoopError, match="has no Kerberos"):
        variables.of(plain, "me")
    assert variables.of(cluster)["KRB5_CLIENT_KTNAME"].endswith("/users/me.keytab")
    trusted = str(cluster.realm.certificates.authorities)
    assert (
        cluster.realm.environment_of_containers()["SSL_CERT_FILE"] == variables.of(cluster)["SSL_CERT_FILE"] == trusted
    )
    with pytest.raises(HadoopError, match=r"no principal carol.*cluster up --principal carol"):
        variables.of(cluster, "carol")


def test_the_fence_ends_the_namenode_of_that_address_alone(tmp_path: Path) -> None:
    ha = Cluster(tmp_path, "127.0.250", 1, "me", Path("/jars"), Path("/jvm/bin/java"), ha=True)
    ha.state.mkdir()
    site.render(ha)
    kinds = ("namenode@127.0.250.2", "namenode@127.0.250.20", "namenode@127.0.250.1", "zkfc@127.0.250.2")
    with ExitStack() as stack:
        words = [sys.executable, "-c", "input()"]
        started = {
            kind: stack.enter_context(subprocess.Popen([*words, f"-Dnodewise.daemon={kind}"], stdin=subprocess.PIPE))
            for kind in kinds
        }

        subprocess.run([ha.state / site.FENCE, "127.0.250.2"], check=True)

        assert started[kinds[0]].wait(30) == -9
        assert [started[kind].poll() for kind in kinds[1:]] == [None] * 3
        for process in started.values():
            process.kill()
