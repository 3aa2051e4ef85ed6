"""The names of what nodes run: ENGINE.MODEL, and the names that stood for the same before.

The speeds of a program are kept as `images_per_second:ENGINE.MODEL:BATCH`, those of training as
`samples_per_second:SCRIPT`, and how long its workers need to begin as `start_seconds:ENGINE.MODEL`.
"""

from __future__ import annotations

import re

FORMER = {
    "mxnet_alexnet": "mxnet.alexnet",
    "onnx_alexnet": "onnx.alexnet",
    "onnx_alexnet_int8": "onnx.alexnet_int8",
}
"""Former name -> name: engines carried their network in their name once."""
_SPEEDS = "images_per_second"
_TRAINING_SPEEDS = "samples_per_second"
_STARTS = "start_seconds"
_LONGEST_SCRIPT = 128 - len(f"{_TRAINING_SPEEDS}:")
"""Characters: a data name has 128."""


def program_name(engine: str, model: str) -> str:
    """The name of a framework with a network.

    >>> program_name("mxnet", "alexnet")
    'mxnet.alexnet'
    """
    return f"{engine}.{model}"


def speed_name(program: str, batch: int) -> str:
    """The data name under which the speeds of a program are kept, by the number of images that it infers at once.

    >>> speed_name("mxnet_alexnet", 16)
    'images_per_second:mxnet.alexnet:16'
    """
    return f"{_SPEEDS}:{FORMER.get(program, program)}:{batch}"


def start_name(program: str) -> str:
    """The data name under which it is kept how long workers need until they have loaded a program.

    >>> start_name("mxnet_alexnet")
    'start_seconds:mxnet.alexnet'
    """
    return f"{_STARTS}:{FORMER.get(program, program)}"


def is_start_name(data_name: str) -> bool:
    """Whether it is a name of `start_name`'s.

    >>> is_start_name("start_seconds:mxnet.alexnet"), is_start_name("images_per_second:mxnet.alexnet:16")
    (True, False)
    """
    return data_name.startswith(f"{_STARTS}:")


def training_speed_name(script: str) -> str:
    """The data name under which the speeds of training by a script are kept: by its name without suffix.

    A name, as people look for that, and whoever edits the script keeps its speeds. Two scripts of one name share them:
    that costs a step or two, as the first speeds that are measured take their place.

    >>> training_speed_name("train.py"), training_speed_name("my net.v2.py")
    ('samples_per_second:train', 'samples_per_second:my_net.v2')
    """
    stem, dot, suffix = script.rpartition(".")
    known = re.sub(r"[^A-Za-z0-9_.-]", "_", stem if dot and stem and suffix.isalnum() else script)
    return f"{_TRAINING_SPEEDS}:{known[:_LONGEST_SCRIPT]}"


def program_of(data_name: str) -> tuple[str, int] | None:
    """Inverse of `speed_name`: program and batch, None for a name of anything else.

    >>> program_of("images_per_second:mxnet_alexnet:16")
    ('mxnet.alexnet', 16)
    >>> program_of("images_per_second:16"), program_of("other:x:16")
    (None, None)
    """
    prefix, _, rest = data_name.partition(":")
    program, _, batch = rest.partition(":")
    if prefix != _SPEEDS or not program or not (batch.isascii() and batch.isdigit()):
        return None
    return FORMER.get(program, program), int(batch)


def spellings(data_name: str) -> tuple[str, ...]:
    """Every data name under which speeds of the same program may have been recorded, the present name first.

    >>> spellings("images_per_second:mxnet_alexnet:16")
    ('images_per_second:mxnet.alexnet:16', 'images_per_second:mxnet_alexnet:16')
    >>> spellings("images_per_second:mine:32")
    ('images_per_second:mine:32',)
    """
    told = program_of(data_name)
    if told is None:
        return (data_name,)
    program, batch = told
    former = (before for before, now in FORMER.items() if now == program)
    return tuple(f"{_SPEEDS}:{name}:{batch}" for name in (program, *former))
