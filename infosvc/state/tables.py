"""The tables: t_DP and t_Data with the paper's columns and ours, and what the management service keeps.

All times are Unix seconds by the service's clock. Names compare byte by byte on every database.
"""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Column, Double, Index, Integer, MetaData, String, Table, Text
from sqlalchemy.dialects.mysql import LONGTEXT

SCHEMA_VERSION = 8

metadata = MetaData()


def _table(name: str, *columns: Column[object] | Index) -> Table:
    return Table(name, metadata, *columns, mysql_charset="utf8mb4", mysql_collate="utf8mb4_bin", mysql_engine="InnoDB")


meta = _table(
    "t_Meta",
    Column("name", String(64), primary_key=True),
    Column("value", BigInteger, nullable=False),
)

# emits and inputs are lists of data names.
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
    Column("emits", JSON, nullable=False),
    Column("inputs", JSON, nullable=False),
    Column("version", BigInteger, nullable=False),
)

# updated_at is when the value was true: the time it was received less the age its agent gave it. ran_at is the
# same for the last run, which may have brought nothing; sequence counts the changes of the row, and skipped the
# ticks that its slot has missed.
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
    Column("skipped", BigInteger, nullable=False),
    Column("sequence", BigInteger, nullable=False),
)

# What values were, for names with keep > 0.
history = _table(
    "t_History",
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("data_name", String(128), nullable=False),
    Column("node_name", String(128), nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("data_value", Text, nullable=False),
    Index("i_History", "data_name", "node_name", "updated_at"),
    Index("i_History_age", "data_name", "updated_at"),
    Index("i_History_node", "node_name"),
)

# History that is forgotten and not all deleted yet: of a name, of a node, or of both; rows up to last_id, and if it is
# given, only what is older than `before`. With run_id, points of t_Metric instead.
forget = _table(
    "t_Forget",
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("data_name", String(128)),
    Column("node_name", String(128)),
    Column("before", Double),
    Column("last_id", BigInteger, nullable=False),
    Column("run_id", String(64)),
)

# boot and sequence name the last batch that was taken from the node's agent; dropped is what that agent has lost.
nodes = _table(
    "t_Node",
    Column("node_name", String(128), primary_key=True),
    Column("address", String(255), nullable=False),
    Column("agent_version", String(64), nullable=False),
    Column("wanted_version", BigInteger, nullable=False),
    Column("last_seen", Double),
    Column("boot", String(64), nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("dropped", BigInteger, nullable=False),
)

# placed: the service chose this node for a producer of scope cluster, and may choose another one.
slots = _table(
    "t_Slot",
    Column("id", String(257), primary_key=True),
    Column("node_name", String(128), nullable=False),
    Column("data_name", String(128), nullable=False),
    Column("running", Boolean, nullable=False),
    Column("interval", Double),
    Column("epoch", BigInteger, nullable=False),
    Column("placed", Boolean, nullable=False),
)

# Of a token only its SHA-256 is kept.
tokens = _table(
    "t_Token",
    Column("token_id", String(64), primary_key=True),
    Column("name", String(128), nullable=False),
    Column("role", String(16), nullable=False),
    Column("node_name", String(128)),
    Column("sha256", String(64), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
)

# spec is the JSON object of a TaskSpec.
tasks = _table(
    "t_Task",
    Column("task_id", String(32), primary_key=True),
    Column("owner", String(128), nullable=False),
    Column("name", String(128), nullable=False),
    Column("spec", Text().with_variant(LONGTEXT, "mysql"), nullable=False),
    Column("state", String(16), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("reason", Text, nullable=False),
    Column("stop_asked", Boolean, nullable=False),
    Column("taken", Boolean, nullable=False),
    Column("application_id", String(64)),
    Column("node_name", String(128)),
    Column("attempt", Integer),
    Column("exit_code", Integer),
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("again_of", String(32)),
    Column("idle_since", Double),
    Column("output_folder", Text),
)

# Tasks that were forgotten and may still have files on the cluster.
gone_tasks = _table(
    "t_GoneTask",
    Column("task_id", String(32), primary_key=True),
    Column("gone_at", Double, nullable=False),
)

# What is to be told when a condition begins or ceases to hold; created_by is the user name of who added it.
alerts = _table(
    "t_Alert",
    Column("alert_id", String(32), primary_key=True),
    Column("condition_text", Text, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("url", Text),
    Column("created_by", String(128), nullable=False),
    Column("created_at", Double, nullable=False),
)

# How an alert stands about a node, a queue, a task or a job; without a row it is off and its condition does not hold.
# since is when it went on or its condition began to hold, until when the condition ceased to hold while it is on.
alert_states = _table(
    "t_AlertState",
    Column("id", String(300), primary_key=True),
    Column("alert_id", String(32), nullable=False),
    Column("about", String(255), nullable=False),
    Column("is_on", Boolean, nullable=False),
    Column("since", Double, nullable=False),
    Column("until", Double),
    Column("said", Text, nullable=False),
    Column("owner", String(128), nullable=False),
)

# Messages that have not arrived yet; alert_id is empty for those that are not about an alert.
deliveries = _table(
    "t_Delivery",
    Column("event_id", String(32), primary_key=True),
    Column("url", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("alert_id", String(32), nullable=False),
)

# Of experiments and runs that programs track with MLflow's client. tags is a JSON object of texts, document that of a
# Run: with its params, its tags and the last point of each metric.
experiments = _table(
    "t_Experiment",
    Column("experiment_id", String(64), primary_key=True),
    Column("owner", String(128), nullable=False),
    Column("name", String(256), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("tags", Text().with_variant(LONGTEXT, "mysql"), nullable=False),
)

runs = _table(
    "t_Run",
    Column("run_id", String(64), primary_key=True),
    Column("owner", String(128), nullable=False),
    Column("experiment_id", String(64), nullable=False),
    Column("document", Text().with_variant(LONGTEXT, "mysql"), nullable=False),
)

# All points of all metrics of runs; timestamp is Unix milliseconds.
metrics = _table(
    "t_Metric",
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("run_id", String(64), nullable=False),
    Column("name", String(250), nullable=False),
    Column("value", String(32), nullable=False),
    Column("timestamp", BigInteger, nullable=False),
    Column("step", BigInteger, nullable=False),
    Index("i_Metric", "run_id", "name"),
)

# Only ever appended to; hash covers the row and the hash of the row before.
audit = _table(
    "t_Audit",
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("who", String(255), nullable=False),
    Column("address", String(255), nullable=False),
    Column("call", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("detail", Text, nullable=False),
    Column("hash", String(64), nullable=False),
)
