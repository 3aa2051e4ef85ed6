"""Hadoop's protocol messages as Python classes, made from the descriptors that its jars carry."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from hadoop.client.jvm import java


@cache
def message_class(java_file: str, message: str) -> Any:
    """The class of one message, by the Java class of its .proto file and its full name; needs the JVM running."""
    pool = DescriptorPool()
    _add(pool, java(java_file).getDescriptor(), set())
    return GetMessageClass(pool.FindMessageTypeByName(message))


def _add(pool: DescriptorPool, java_descriptor: Any, known: set[str]) -> None:
    """Add a .proto file after the files that it imports."""
    name = str(java_descriptor.getName())
    if name in known:
        return
    known.add(name)
    for imported in java_descriptor.getDependencies():
        _add(pool, imported, known)
    pool.Add(FileDescriptorProto.FromString(bytes(java_descriptor.toProto().toByteArray())))
