"""The list of the service's commands; to add one, write its file and name it here."""

from infosvc.commands.data import data
from infosvc.commands.node import node
from infosvc.commands.producer import producer
from infosvc.commands.serve import serve
from infosvc.commands.slot import slot

__all__ = ["data", "node", "producer", "serve", "slot"]
