"""The realm of a cluster: its database of principals, and the keytabs of daemons and users."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hadoop.errors import HadoopError
from hadoop.local.files.own_files import write_own
from hadoop.local.files.templates import fill
from hadoop.local.kerberos import programs
from hadoop.local.kerberos.certificates import Certificates

REALM = "NODEWISE.TEST"
INSTANCE = "nodes"
"""What stands for the name of a machine in the principals of daemons that other daemons call.

All of them call from 127.0.0.1, whichever address they listen on, so they cannot be told apart by theirs.
"""
HDFS_ACCOUNT, YARN_ACCOUNT = "hdfs", "yarn"
_SUPERGROUP = "supergroup"
_SERVICES = ("nn", "dn", "jn", "nm")
_USER = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")


def check_principals(names: Sequence[str]) -> None:
    """Raise HadoopError when one cannot be the name of a user."""
    for name in names:
        if not _USER.fullmatch(name):
            raise HadoopError(f"--principal {name!r} is not allowed", remedy="give a name such as alice")
        if name in (HDFS_ACCOUNT, YARN_ACCOUNT):
            raise HadoopError(f"--principal {name} is the account of daemons", remedy="give another name")


@dataclass(frozen=True)
class Realm:
    """The realm of a cluster whose files are in `state`, with the KDC at `kdc` (host:port), which writes into `logs`.

    `masters` and `nodes` are the addresses of daemons, `addresses` those that they may ever have. `user` runs the
    cluster and may do everything in HDFS, `principals` are further users.
    """

    state: Path
    logs: Path
    kdc: str
    masters: tuple[str, ...]
    nodes: tuple[str, ...]
    addresses: tuple[str, ...]
    user: str
    principals: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where everything of the realm is."""
        return self.state / "kerberos"

    @property
    def certificates(self) -> Certificates:
        """Those of the daemons' pages."""
        return Certificates(self.state / "tls", self.addresses)

    @property
    def krb5_conf(self) -> Path:
        """What leads programs to the realm: KRB5_CONFIG, and java.security.krb5.conf of Java."""
        return self.folder / "krb5.conf"

    @property
    def commands(self) -> Path:
        """The folder of kinit and its like, where this machine has none of its own."""
        return self.folder / "bin"

    @property
    def java_options(self) -> list[str]:
        """What Java is told to find the realm."""
        return [f"-Djava.security.krb5.conf={self.krb5_conf}"]

    @property
    def users(self) -> tuple[str, ...]:
        """Who has a keytab."""
        return tuple(dict.fromkeys((self.user, *self.principals)))

    def keytab(self, user: str) -> Path:
        """The keytab of a user."""
        return self.folder / "users" / f"{user}.keytab"

    def tickets(self, user: str) -> str:
        """Where the tickets of a user are kept, as KRB5CCNAME has it."""
        return f"FILE:{self.folder}/users/{user}.tickets"

    def environment_of_containers(self) -> dict[str, str]:
        """What programs in containers need to find the realm, and to trust the daemons' pages."""
        return {
            "KRB5_CONFIG": str(self.krb5_conf),
            "JAVA_TOOL_OPTIONS": " ".join(self.java_options),
            "SSL_CERT_FILE": str(self.certificates.authorities),
        }

    def environment_of_kdc(self) -> dict[str, str]:
        """The variables of the programs that keep the realm."""
        told = {"KRB5_CONFIG": str(self.krb5_conf), "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf")}
        return told | programs.libraries(programs.find("krb5kdc"))

    def values(self) -> dict[str, object]:
        """The templates' variables that only a cluster with Kerberos has."""
        groups = {HDFS_ACCOUNT: f"{HDFS_ACCOUNT},{_SUPERGROUP}", YARN_ACCOUNT: YARN_ACCOUNT}
        groups |= {user: user for user in self.principals} | {self.user: f"{self.user},{_SUPERGROUP}"}
        return self.certificates.values() | {
            "hadoop_realm": REALM,
            "hadoop_principal_host": INSTANCE,
            "hadoop_keytab_dir": self.folder / "keytabs",
            "hadoop_hdfs_account": HDFS_ACCOUNT,
            "hadoop_yarn_account": YARN_ACCOUNT,
            "hadoop_groups": ";".join(f"{user}={names}" for user, names in groups.items()),
        }

    def prepare(self) -> None:
        """Make what is missing of the realm: its files, database, principals, keytabs and certificates."""
        for place in (self.folder, self.folder / "keytabs", self.folder / "users", self.commands):
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.certificates.prepare()
        self._write_settings()
        self._link_commands()
        secret = self.folder / "keytabs" / "http-secret"
        if not secret.exists():
            write_own(secret, secrets.token_hex(32).encode())
        if not (self.folder / "database" / "stash").exists():
            # What an interrupted start left of it is no use, nor are keytabs of another one.
            shutil.rmtree(self.folder / "database", ignore_errors=True)
            self._note.unlink(missing_ok=True)
            (self.folder / "database").mkdir(mode=0o700)
            password = secrets.token_hex(16)  # asked for twice; the stash keeps what is made of it
            self._call(["kdb5_util", "create", "-s", "-r", REALM], f"{password}\n{password}\n")
        self._make_keytabs(self._keytabs())

    def _write_settings(self) -> None:
        plugins = programs.plugins()
        variables: dict[str, object] = {
            "hadoop_realm": REALM,
            "hadoop_kdc": self.kdc,
            "hadoop_kdc_dir": self.folder / "database",
            "hadoop_kdc_log": f"FILE:{self.logs}/kdc.log",
        } | ({"hadoop_kdc_plugins": plugins} if plugins else {})
        for name in ("krb5.conf", "kdc.conf"):
            (self.folder / name).write_text(fill(f"kerberos/{name}.j2", variables), encoding="utf-8")

    def _link_commands(self) -> None:
        """Let people call by name what was only unpacked, and needs its own libraries."""
        for name in programs.FOR_PEOPLE:
            program, command = programs.find(name), self.commands / name
            command.unlink(missing_ok=True)
            if programs.is_unpacked(program):
                told = " ".join(f"{key}={shlex.quote(value)}" for key, value in programs.libraries(program).items())
                command.write_text(f'#!/bin/sh\n{told} exec {shlex.quote(str(program))} "$@"\n', encoding="utf-8")
                command.chmod(0o700)

    def _keytabs(self) -> dict[Path, list[str]]:
        """Every keytab with its principals."""
        places = self.folder / "keytabs"
        found = {places / f"{service}.keytab": [f"{service}/{INSTANCE}"] for service in _SERVICES}
        found[places / "rm.keytab"] = [f"rm/{master}" for master in self.masters]
        found[places / "HTTP.keytab"] = [f"HTTP/{host}" for host in (*self.masters, *self.nodes)]
        return found | {self.keytab(user): [user] for user in self.users}

    @property
    def _note(self) -> Path:
        """Whose keys are in which keytab."""
        return self.folder / "keytabs" / "principals.json"

    def _make_keytabs(self, wanted: Mapping[Path, Sequence[str]]) -> None:
        """Make keytabs anew that do not hold these principals; nobody sees one that is half written."""
        note = self._note
        known: dict[str, list[str]] = json.loads(note.read_text(encoding="utf-8")) if note.exists() else {}
        due = {file: names for file, names in wanted.items() if known.get(str(file)) != names or not file.exists()}
        if not due:
            return
        drafts = {file: file.with_name(f".{file.name}.new") for file in due}
        # What is there already stays as it is, with a complaint.
        lines = [f"addprinc -randkey {name}" for names in due.values() for name in names]
        for file, names in due.items():
            drafts[file].unlink(missing_ok=True)
            lines += [f"ktadd -norandkey -k {drafts[file]} {name}" for name in names]
        said = self._call(["kadmin.local", "-r", REALM], "\n".join([*lines, "quit"]) + "\n")
        for file, draft in drafts.items():
            if not draft.exists():
                raise HadoopError(f"kadmin.local made no {file}: {_last_line(said)}")
            draft.chmod(0o600)
            draft.replace(file)
        everything = known | {str(file): list(names) for file, names in due.items()}
        write_own(note, json.dumps(everything, indent=2).encode())

    def _call(self, words: Sequence[str], text: str = "") -> str:
        """Run a program of the realm, and give what it complains of; HadoopError when it fails."""
        done = subprocess.run(
            [str(programs.find(words[0])), *words[1:]],
            input=text,
            env={**os.environ, **self.environment_of_kdc()},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise HadoopError(f"{words[0]} failed: {_last_line(done.stderr)}")
        return done.stderr


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1]
