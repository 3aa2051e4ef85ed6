"""The ports that Hadoop uses where the site files name none, as in its hdfs-default.xml and yarn-default.xml."""

from __future__ import annotations

DEFAULT_PORTS = {
    "dfs.namenode.rpc-address": 8020,
    "dfs.namenode.http-address": 9870,
    "dfs.namenode.https-address": 9871,
    "yarn.resourcemanager.scheduler.address": 8030,
    "yarn.resourcemanager.resource-tracker.address": 8031,
    "yarn.resourcemanager.address": 8032,
    "yarn.resourcemanager.admin.address": 8033,
    "yarn.resourcemanager.webapp.address": 8088,
    "yarn.resourcemanager.webapp.https.address": 8090,
    "yarn.nodemanager.localizer.address": 8040,
    "yarn.nodemanager.webapp.address": 8042,
}
