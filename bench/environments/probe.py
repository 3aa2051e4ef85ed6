"""The program of all ways, by the packages' Python: notes when its first line runs, and what importing and a step take.

probe.py MODULE FOLDER [hold | again]: into FOLDER/probe.json. With `hold` it then waits for FOLDER/go; with `again`
another Python does the same once more, into FOLDER/again.
"""

import time

FIRST = time.time()


def main() -> None:
    """As the module says."""
    import importlib
    import json
    import subprocess
    import sys
    from pathlib import Path

    name, folder, mode = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    begun = time.monotonic()
    module = importlib.import_module(name)
    imported = time.monotonic()
    {"mxnet": convolve, "numpy": multiply, "torch": convolve_tensors, "six": name_kinds}[name](module)
    found = {"first": FIRST, "import": imported - begun, "step": time.monotonic() - imported}
    new = folder / "probe.new"
    new.write_text(json.dumps(found))
    new.replace(folder / "probe.json")
    if "again" in mode:
        (folder / "again").mkdir()
        subprocess.run([sys.executable, __file__, name, str(folder / "again")], check=True)
    while "hold" in mode and not (folder / "go").exists():
        time.sleep(0.05)


def convolve(mxnet) -> None:  # type: ignore[no-untyped-def]
    """One small convolution."""
    images, kernels = mxnet.nd.ones((1, 3, 32, 32)), mxnet.nd.ones((8, 3, 3, 3))
    mxnet.nd.Convolution(images, kernels, no_bias=True, kernel=(3, 3), num_filter=8).wait_to_read()


def multiply(numpy) -> None:  # type: ignore[no-untyped-def]
    """One small product."""
    numpy.ones((32, 32)) @ numpy.ones((32, 32))


def convolve_tensors(torch) -> None:  # type: ignore[no-untyped-def]
    """One small convolution."""
    torch.nn.functional.conv2d(torch.ones(1, 3, 32, 32), torch.ones(8, 3, 3, 3))


def name_kinds(six) -> None:  # type: ignore[no-untyped-def]
    """Hardly anything."""
    str(six.string_types)


if __name__ == "__main__":
    main()
