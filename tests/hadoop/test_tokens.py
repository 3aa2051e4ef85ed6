"""The tokens that containers get where Hadoop has Kerberos."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from hadoop.client.jars import JARS

# Tokens by kind and service; what workers get of them, for a NameNode that the site files name in two ways.
GIVING = """
import json, sys
from pathlib import Path
from hadoop.client.jvm import HadoopHome, java, start
from hadoop.client.kerberos import tokens
start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), "ada"))
text = java("org.apache.hadoop.io.Text")

def held(service, authority):
    credentials = java("org.apache.hadoop.security.Credentials")()
    for kind, where in (("HDFS_DELEGATION_TOKEN", service), ("YARN_AM_RM_TOKEN", "rm"), ("RM_DELEGATION_TOKEN", "rm2")):
        token = java("org.apache.hadoop.security.token.Token")(kind.encode(), b"secret", text(kind), text(where))
        credentials.addToken(text(where), token)
    given = tokens.of_hdfs(credentials)
    tokens.name_as_written(given, service, authority)
    return sorted((str(one.getKind()), str(one.getService()), bytes(one.getPassword()).decode())
                  for one in given.getAllTokens())

print(json.dumps([tokens.is_secure(), held("127.0.0.1:8020", "localhost:8020"), held("ha-hdfs:ns1", "ns1"),
                  held("127.0.0.1:8020", "127.0.0.1:8020")]))
"""


def test_workers_get_the_tokens_of_hdfs_alone_and_find_them_by_the_written_name(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration/>")

    done = subprocess.run(
        [sys.executable, "-c", GIVING, str(tmp_path), str(JARS)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    kind = "HDFS_DELEGATION_TOKEN"
    assert json.loads(done.stdout) == [
        False,
        [[kind, "127.0.0.1:8020", "secret"], [kind, "localhost:8020", "secret"]],
        [[kind, "ha-hdfs:ns1", "secret"]],
        [[kind, "127.0.0.1:8020", "secret"]],
    ]
