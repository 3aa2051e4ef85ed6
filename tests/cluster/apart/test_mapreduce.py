"""MapReduce on a cluster of this machine: words are counted by mappers and a reducer, across the shuffle."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from hdfs import InsecureClient

from bench.stage import START_SECONDS
from hadoop.local import lifecycle
from hadoop.local.lifecycle import Cluster

pytestmark = pytest.mark.cluster

# A JVM cannot be started twice in a process nor survive a fork, so it gets a process of its own.
COUNT = """
import sys
from pathlib import Path
from hadoop.client.jvm import HadoopHome, configuration, java, start

start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
conf = configuration()
memory = {"yarn.app.mapreduce.am.resource.mb": 640, "mapreduce.map.memory.mb": 512, "mapreduce.reduce.memory.mb": 512}
heaps = {f"{name}.java.opts": "-Xmx200m" for name in ("mapreduce.map", "mapreduce.reduce")}
for name, value in {
    "mapreduce.framework.name": "yarn",
    "mapreduce.application.classpath": f"{sys.argv[2]}/*",
    "yarn.app.mapreduce.am.command-opts": "-Xmx300m",
    "mapreduce.task.io.sort.mb": 16,
    **memory,
    **heaps,
}.items():
    conf.set(name, str(value))
library = "org.apache.hadoop.mapreduce.lib"
job = java("org.apache.hadoop.mapreduce.Job").getInstance(conf)
job.setMapperClass(java(f"{library}.map.TokenCounterMapper").class_)
job.setReducerClass(java(f"{library}.reduce.IntSumReducer").class_)
job.setOutputKeyClass(java("org.apache.hadoop.io.Text").class_)
job.setOutputValueClass(java("org.apache.hadoop.io.IntWritable").class_)
path = java("org.apache.hadoop.fs.Path")
java(f"{library}.input.FileInputFormat").addInputPath(job, path("/words"))
java(f"{library}.output.FileOutputFormat").setOutputPath(job, path("/counted"))
sys.exit(0 if job.waitForCompletion(False) else job.getStatus().getFailureInfo())
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home = tmp_path_factory.mktemp("mapreduce")
    try:
        yield lifecycle.up(home, nodes=1, mapreduce=True, ready_seconds=START_SECONDS)
    finally:
        lifecycle.down(home)


def test_words_are_counted(cluster: Cluster) -> None:
    hdfs = InsecureClient(cluster.namenode_http, user=cluster.user)
    for number, text in enumerate(("one two two", "two three")):
        hdfs.write(f"/words/{number}", data=text.encode())

    argv = [sys.executable, "-c", COUNT, str(cluster.conf_dir), str(cluster.jars), cluster.user]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=700)

    assert done.returncode == 0, done.stderr[-2000:]
    with hdfs.read("/counted/part-r-00000") as counted:
        assert counted.read().decode() == "one\t1\nthree\t1\ntwo\t3\n"
