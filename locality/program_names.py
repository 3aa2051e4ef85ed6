"""The names of what nodes run: ENGINE.MODEL, and the names that stood for the same before.

The speeds of a program are kept as `images_per_second:ENGINE.MODEL:BATCH`.
"""

from __future__ import annotations

FORMER = {
    "mxnet_alexnet": "mxnet.alexnet",
    "onnx_alexnet": "onnx.alexnet",
    "onnx_alexnet_int8": "onnx.alexnet_int8",
}
"""Former name -> name: engines carried their network in their name once."""
_SPEEDS = "images_per_second"


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


def spellings(data_name: str) -> tuple[str, ...]:
    """Every data name under which speeds of the same program may have been recorded, the present name first.

    >>> spellings("images_per_second:mxnet_alexnet:16")
    ('images_per_second:mxnet.alexnet:16', 'images_per_second:mxnet_alexnet:16')
    >>> spellings("images_per_second:mine:32")
    ('images_per_second:mine:32',)
    """
    prefix, _, rest = data_name.partition(":")
    program, colon, batch = rest.partition(":")
    if prefix != _SPEEDS or not colon:
        return (data_name,)
    program = FORMER.get(program, program)
    former = (before for before, now in FORMER.items() if now == program)
    return tuple(f"{_SPEEDS}:{name}:{batch}" for name in (program, *former))
