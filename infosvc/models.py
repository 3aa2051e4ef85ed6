"""The tables: t_DP and t_Data with the paper's columns and ours, and what the management service keeps.

All times are Unix seconds by the service's clock. Names compare byte by byte on every database.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, MetaData, String, Table, Text

SCHEMA_VERSION = 1

metadata = MetaData()


def _table(name: str, *columns: Column[object]) -> Table:
    return Table(name, metadata, *columns, mysql_charset="utf8mb4", mysql_collate="utf8mb4_bin", mysql_engine="InnoDB")


meta = _table(
    "t_Meta",
    Column("name", String(64), primary_key=True),
    Column("value", BigInteger, nullable=False),
)

producers = _table(
    "t_DP",
    Column("data_name", String(128), primary_key=True),
    Column("cmd", Text, nullable=False),
    Column("time_max", Double, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("scope", String(16), nullable=False),
    Column("replicas", Integer, nullable=False),
    Column("timeout", Double, nullable=False),
    Column("ttl", Double, nullable=False),
    Column("unit", String(64), nullable=False),
    Column("help", Text, nullable=False),
    Column("keep", Double, nullable=False),
    Column("sha256", String(64)),
    Column("version", BigInteger, nullable=False),
)

# updated_at is when the value was true: the time it was received less the age its agent gave it. ran_at is the
# same for the last run, which may have brought nothing; sequence counts the changes of the row.
values = _table(
    "t_Data",
    Column("id", String(257), primary_key=True),
    Column("data_name", String(128), nullable=False),
    Column("data_value", Text),
    Column("node_name", String(128), nullable=False),
    Column("updated_at", Double),
    Column("outcome", String(16), nullable=False),
    Column("reason", Text),
    Column("ran_at", Double, nullable=False),
    Column("duration", Double),
    Column("sequence", BigInteger, nullable=False),
)

# boot and sequence name the last batch that was taken from the node's agent.
nodes = _table(
    "t_Node",
    Column("node_name", String(128), primary_key=True),
    Column("address", String(255), nullable=False),
    Column("agent_version", String(64), nullable=False),
    Column("wanted_version", BigInteger, nullable=False),
    Column("last_seen", Double),
    Column("boot", String(64), nullable=False),
    Column("sequence", BigInteger, nullable=False),
)

slots = _table(
    "t_Slot",
    Column("id", String(257), primary_key=True),
    Column("node_name", String(128), nullable=False),
    Column("data_name", String(128), nullable=False),
    Column("running", Boolean, nullable=False),
    Column("interval", Double),
)
