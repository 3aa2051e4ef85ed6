#!/usr/bin/env python3
"""Prints a node's classes for YARN's NodeManager: node_attributes.py [RULES [NODE]]

The NodeManager runs this as yarn.nodemanager.node-attributes.provider.script.path, with RULES,NODE from .script.opts.
By default RULES is node_attributes.conf beside this file, and NODE the machine's own name. Each line of RULES makes one
attribute of one measured value of the node:

    service = http://master:8400
    token-file = /etc/nodewise/attributes.token
    capability_class = perf_cpu: high >= 0.8, middle >= 0.4, low
    cuda = gpu_cuda_version: *

The first class whose bound the value reaches is the node's; one without a bound takes the rest; * is the value itself,
with _ for what YARN allows in none. Placement constraints know = and != only, so these are classes and not numbers.
There is no attribute for a value that is missing or not fresh, that is text where a bound needs a number, or that is to
be taken as it is and begins with neither letter nor digit. Of two services name both, with a comma between: the second
is asked when the first is away. When no service answers, or RULES are wrong, this says why and exits 1: the NodeManager
logs that and keeps what it had.

Needs Python 3.6 and nothing else.
"""

import json
import math
import re
import socket
import sys
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

# What YARN takes: one attribute that it does not makes it ignore all of them.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,254}")
VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
FORBIDDEN = re.compile(r"[^A-Za-z0-9._-]")

RULE = re.compile(r"(?P<data_name>[A-Za-z_][A-Za-z0-9_.:-]*):\s+(?P<classes>.+)")
CLASS = re.compile(r"(?P<label>\S+?)(?:\s*>=\s*(?P<bound>[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?))?")
SERVICE = re.compile(r"https?://[^/?#,\s]+/?(?:\s*,\s*https?://[^/?#,\s]+/?)*")
TOKEN = re.compile(r"[!-~]+")
EXAMPLE = "capability_class = perf_cpu: high >= 0.8, low"
SECONDS = 5.0
UNAVAILABLE = 503


class Wrong(Exception):
    """A sentence about a mistake in the rules, or about the service."""


class Away(Wrong):
    """The service does not answer now, or another one is active."""


def rules(text):
    """What a file says: the settings, and attribute -> (data name, [(class, bound or None)])."""
    settings, attributes = {}, {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.strip().startswith("#"):
            continue
        key, _, value = (part.strip() for part in line.partition("="))
        if key in settings or key in attributes:
            raise Wrong(f"line {number} says {key} a second time")
        if key in ("service", "token-file") and value:
            settings[key] = value
        else:
            attributes[key] = rule(number, line.strip(), key, value)
    if not SERVICE.fullmatch(settings.get("service", "")):
        raise Wrong("there must be a line like: service = http://master:8400")
    if not attributes:
        raise Wrong(f"there must be a line like: {EXAMPLE}")
    return settings, attributes


def rule(number, line, key, value):
    """(data name, [(class, bound or None)]) of one line."""
    found = RULE.fullmatch(value)
    if not NAME.fullmatch(key) or not found:
        raise Wrong(f"line {number} is {line!r}, and must be like: {EXAMPLE}")
    classes = [classed(number, part.strip()) for part in found.group("classes").split(",")]
    bounds = [float("-inf") if bound is None else bound for _, bound in classes]
    if any(after >= before for before, after in zip(bounds, bounds[1:])):  # noqa: B905, RUF007 - Python 3.6 has neither
        raise Wrong(f"line {number} has a class that no node is ever in: high bounds come first, and no bound last")
    return found.group("data_name"), classes


def classed(number, text):
    """(class, bound or None)."""
    found = CLASS.fullmatch(text)
    if not found or not (found.group("label") == "*" or VALUE.fullmatch(found.group("label"))):
        raise Wrong(f"line {number} says {text!r}, and a class is like: high >= 0.8")
    bound = found.group("bound")
    return found.group("label"), None if bound is None else float(bound)


def label(classes, value):
    """The class of a value as text, None without any."""
    try:
        number = float(value) if math.isfinite(float(value)) else None
    except ValueError:
        number = None
    for name, bound in classes:
        if bound is not None and number is None:
            return None
        if bound is None or number >= bound:
            found = FORBIDDEN.sub("_", value.strip()) if name == "*" else name
            return found if VALUE.fullmatch(found) else None
    return None


class StayHere(HTTPRedirectHandler):
    """Takes the token nowhere else."""

    def redirect_request(self, *_):
        return None


def values(settings, names, node):
    """Fresh values of the node, by data name, of the first service that is not away."""
    headers, reasons = credentials(settings), []
    for service in settings["service"].split(","):
        try:
            return ask(service.strip().rstrip("/"), headers, names, node)
        except Away as error:
            reasons.append(str(error))
    raise Away("; ".join(reasons))


def ask(service, headers, names, node):
    """Fresh values of the node by one service, by data name."""
    query = urlencode([*(("name", name) for name in names), ("node", node)])
    request = Request(f"{service}/api/v1/data?{query}", headers=headers)  # noqa: S310 - rules() checks it
    try:
        # A proxy that the NodeManager's environment names is not for the way to the master.
        with build_opener(ProxyHandler({}), StayHere).open(request, timeout=SECONDS) as answer:
            said = json.loads(answer.read().decode())["data"]
        found = [(one["data_name"], value) for one in said for value in one["values"]]
        return {name: str(value["data_value"]) for name, value in found if value["state"] == "fresh"}
    except HTTPError as error:
        kind = Away if error.code == UNAVAILABLE else Wrong
        raise kind(f"{service} says {error.code}: {complaint(error)}") from error
    except (OSError, HTTPException) as error:
        raise Away(f"{service} does not answer: {getattr(error, 'reason', error)}") from error
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise Wrong(f"{service} answers, but not as the information service does") from error


def complaint(error):
    """What the service says about a call that it refuses."""
    try:
        return json.loads(error.read().decode())["error"]["message"]
    except (OSError, HTTPException, ValueError, LookupError, TypeError):
        return error.reason


def credentials(settings):
    """The header with the token, if there is a file of it."""
    if "token-file" not in settings:
        return {}
    token = read(settings["token-file"]).strip()
    if not TOKEN.fullmatch(token):
        raise Wrong(f"{settings['token-file']} holds no token: it must be one word")
    return {"Authorization": f"Bearer {token}"}


def read(path):
    """A file's text."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise Wrong(f"{path} cannot be read: {error}") from error


def main(argv):
    """Print an attribute a line."""
    file = argv[1].strip() if len(argv) > 1 else Path(__file__).with_suffix(".conf")
    node = argv[2].strip() if len(argv) > 2 else socket.getfqdn()
    settings, attributes = rules(read(file))
    known = values(settings, sorted({name for name, _ in attributes.values()}), node)
    for attribute, (name, classes) in attributes.items():
        found = label(classes, known[name]) if name in known else None
        if found is not None:
            print(f"NODE_ATTRIBUTE:{attribute},STRING,{found}")


if __name__ == "__main__":
    try:
        main(sys.argv)
    except (Wrong, OSError) as error:
        print("node_attributes:", *str(error).split(), file=sys.stderr)
        sys.exit(1)
