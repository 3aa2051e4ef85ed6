"""An sshd for each node of the cluster on this machine, run by whoever runs the cluster, with keys of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hadoop.errors import HadoopError
from hadoop.local import ports
from hadoop.local.state import MARKER, Cluster

_INSTALL = "`apt-get install openssh-server`"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# StrictModes off: it wants every parent directory to be the user's alone, which /tmp is not; the files themselves
# lie in a directory of mode 0700. UsePAM: sshd alone lets no locked account in, not even by key. SetEnv: sshd passes
# nothing of its environment on, and `down` looks for the marker.
_SERVER = """\
ListenAddress {node}:{port}
HostKey {directory}/host_key
AuthorizedKeysFile {keys}/authorized_keys
PidFile none
StrictModes no
UsePAM {pam}
AllowUsers {user}
PermitRootLogin prohibit-password
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
AllowTcpForwarding no
AllowAgentForwarding no
X11Forwarding no
PrintMotd no
UseDNS no
MaxStartups 100
Subsystem sftp internal-sftp
SetEnv {marker}={id} PATH={path}
"""

_CLIENT = """\
Host {node}
  HostName {node}
  Port {port}
  User {user}
  IdentityFile {keys}/id_ed25519
  IdentitiesOnly yes
  UserKnownHostsFile {keys}/known_hosts
  StrictHostKeyChecking yes
"""


def program() -> Path:
    """Find sshd, which must be called by its full path; HadoopError with the remedy when it is missing."""
    path = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:{_PATH}")
    if path is None:
        raise HadoopError("sshd is missing", remedy=f"install it with {_INSTALL}")
    return Path(path)


def config_file(cluster: Cluster, node: str) -> Path:
    """The configuration of one node's sshd."""
    return cluster.node_dir(node) / "ssh" / "sshd_config"


def prepare(cluster: Cluster) -> None:
    """Make the missing keys and all configuration files of servers and clients; HadoopError when ssh-keygen fails."""
    keys = cluster.ssh_config.parent
    keys.mkdir(parents=True, exist_ok=True, mode=0o700)
    shutil.copyfile(_key(keys / "id_ed25519"), keys / "authorized_keys")
    known, clients = [], []
    everywhere = {"marker": MARKER, "id": cluster.id, "path": _PATH, "pam": "yes" if _is_locked(cluster.user) else "no"}
    for node in cluster.nodes:
        directory = config_file(cluster, node).parent
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        public = _key(directory / "host_key").read_text(encoding="ascii").strip()
        known.append(f"[{node}]:{ports.SSHD} {public}\n")
        names = {"node": node, "port": ports.SSHD, "user": cluster.user, "keys": keys, "directory": directory}
        clients.append(_CLIENT.format_map(names))
        text = _SERVER.format_map(names | everywhere)
        config_file(cluster, node).write_text(text, encoding="ascii")
    (keys / "known_hosts").write_text("".join(known), encoding="ascii")
    cluster.ssh_config.write_text("\n".join(clients), encoding="ascii")
    if os.getuid() == 0:
        # Root's sshd drops its rights into this directory; only a system service would have made it.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)


def _is_locked(user: str) -> bool:
    """Tell whether this account's password is locked, as root's is on some systems; only root can see that."""
    if os.getuid() != 0:
        return False
    try:
        accounts = Path("/etc/shadow").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return any(account.startswith(f"{user}:!") for account in accounts)


def _key(path: Path) -> Path:
    """Make an ed25519 key pair unless there is one; return the public half."""
    public = path.with_suffix(".pub")
    if path.exists() and public.exists():
        return public
    path.unlink(missing_ok=True)
    try:
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "nodewise", "-f", str(path)],
            check=True,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise HadoopError("ssh-keygen is missing", remedy=f"install it with {_INSTALL}") from None
    except subprocess.CalledProcessError as error:
        raise HadoopError(f"ssh-keygen could not write {path}: {error.stderr.strip()}") from error
    return public


def check_logins(cluster: Cluster) -> None:
    """Log in to every node once with the files written for clients; HadoopError with ssh's own reason."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(lambda node: _login(cluster, node), cluster.nodes))


def _login(cluster: Cluster, node: str) -> None:
    argv = ["ssh", "-F", str(cluster.ssh_config), "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", node, "true"]
    result = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
    if result.returncode != 0:
        reason = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
        log = cluster.logs / f"sshd-{node}.log"
        raise HadoopError(f"ssh to node {node} as {cluster.user} failed: {reason} (its log: {log})")
