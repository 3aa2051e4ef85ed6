"""Images for a job: make some from photographs that ship inside packages, load a folder into HDFS."""

from __future__ import annotations

import io
import os
import random
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TypeVar
from urllib.parse import urlsplit

from PIL import Image, ImageEnhance, ImageOps, UnidentifiedImageError

from hadoop.rest.masters import Addresses, as_tuple
from hadoop.rest.pages import NoAnswer
from hadoop.rest.webhdfs import Refused
from hadoop.rest.webhdfs_writing import WritableHdfs
from jobs.errors import JobError
from jobs.images import labels

Progress = Callable[[int, int], None]  # done, of how many
T = TypeVar("T")
R = TypeVar("R")

SIZE = (500, 375)
FILE_BYTES = (75_000, 110_000)
QUALITIES = range(80, 99)

# The colour photographs in the wheels themselves; the rest of skimage.data would be downloaded.
PACKAGED = {
    "skimage": (
        "data/astronaut.png",
        "data/chelsea.png",
        "data/coffee.png",
        "data/hubble_deep_field.jpg",
        "data/ihc.png",
        "data/motorcycle_left.png",
        "data/motorcycle_right.png",
        "data/retina.jpg",
        "data/rocket.jpg",
    ),
    "sklearn": ("datasets/images/china.jpg", "datasets/images/flower.jpg"),
}
ONE_THING = {"motorcycle_left": "motorcycle", "motorcycle_right": "motorcycle"}
"""Photographs that are two views of the same: no crop tells from which it was cut, so they are one class."""
DEBIAN = (Path("/usr/share/backgrounds"), Path("/usr/share/wallpapers"))

FORMATS = frozenset({"BMP", "JPEG", "PNG", "PPM", "TIFF", "WEBP"})
UPLOADS_AT_ONCE = 8
MIB = 1 << 20
BLOCK_BYTES = 16 * MIB
"""HDFS sets a whole block aside for each file while it is written: its usual 128 MiB would soon fill small nodes."""
# Not urlsplit, which would cut '?' and '#' out of names.
ADDRESS = re.compile(r"(?:(?P<scheme>[^:/]*):)?(?://(?P<host>[^/]*))?(?P<path>.*)", re.DOTALL)


@dataclass(frozen=True)
class LoadResult:
    """`loaded` images in HDFS, those of `broken` among them; path and reason of what is not, in `skipped`."""

    loaded: int
    skipped: tuple[tuple[Path, str], ...]
    broken: tuple[tuple[Path, str], ...] = ()


class NoImage(ValueError):
    """A file that no engine could read, whatever it holds."""


class Broken(ValueError):
    """A file that is named like a JPEG or begins like an image, but cannot be decoded."""


def photographs(folders: Iterable[Path] = DEBIAN) -> list[Path]:
    """Colour photographs of the installed packages, then JPEGs of at least 500 x 375 found in `folders`."""
    found = []
    for package, names in PACKAGED.items():
        spec = find_spec(package)
        root = Path((spec and spec.origin) or package).parent
        found += [root / name for name in names if (root / name).is_file()]
    extra = sorted(path for folder in folders for path in folder.rglob("*.jpg") if path.is_file())
    return found + [path for path in extra if _is_large(path)]


def make(
    directory: Path,
    count: int,
    seed: int = 1,
    on_progress: Progress | None = None,
    sources: Sequence[Path] | None = None,
) -> int:
    """Write `count` JPEGs of 500 x 375 pixels and 60 to 110 kB, called <photograph>_<number>.jpg; returns `count`.

    Each is a seeded crop, flip and colour change of one photograph of `sources` (default: `photographs()`), and
    labelled with what that shows; the same seed and photographs give the same files. JobError: a count below 1, a
    directory that holds something, no photographs, a disk that refuses.
    """
    if count < 1:
        raise JobError(f"cannot make {count} images", remedy="ask for 1 or more")
    try:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise JobError(f"{directory} exists and is not an empty folder", remedy="name a new or empty one")
        originals = _open_all(photographs() if sources is None else sources)
        directory.mkdir(parents=True, exist_ok=True)
        draw = partial(_draw, directory, originals, seed, len(str(count)))
        shown: dict[str, str] = {}
        for file, name in _in_threads(os.cpu_count() or 1, draw, range(1, count + 1)):
            shown[file] = ONE_THING.get(name, name)
            if on_progress:
                on_progress(len(shown), count)
        labels.write(directory, shown, list(dict.fromkeys(ONE_THING.get(name, name) for name, _ in originals)))
    except OSError as error:
        raise JobError(f"cannot make images in {directory}: {error.strerror or error}") from None
    return count


def load(
    directory: Path,
    hdfs_dir: str,
    namenodes: Addresses,
    user: str,
    on_progress: Progress | None = None,
    overwrite: bool = False,
    keep_broken: bool = False,
    names: Collection[str] = (),
) -> LoadResult:
    """Upload every image below `directory` to the same relative path below `hdfs_dir`, over WebHDFS.

    What tells their classes stays where it is.
    Each file is decoded first. What is not an image, or a broken or a hidden one, is in `skipped` with the reason; with
    `keep_broken` broken ones are uploaded all the same. JobError: an empty folder, an `hdfs_dir` elsewhere than
    at the `namenodes` (which are known by further `names`), a target file that is there already (unless `overwrite`),
    an HDFS that does not answer or refuses.
    """
    files = files_below(directory)
    target = hdfs_path(hdfs_dir, namenodes, names)
    upload = _Upload(WritableHdfs(namenodes, user), directory, target, overwrite, keep_broken)
    results = []
    with hdfs_failures(f"store images in {upload.target} for user {user}"):
        upload.check_target(files)
        for result in _in_threads(UPLOADS_AT_ONCE, upload, files):
            results.append(result)
            if on_progress:
                on_progress(len(results), len(files))
    bad = sorted((path, reason, uploaded) for path, uploaded, reason in results if reason)
    return LoadResult(
        sum(uploaded for _, uploaded, _ in results),
        tuple((path, reason) for path, reason, uploaded in bad if not uploaded),
        tuple((path, reason) for path, reason, uploaded in bad if uploaded),
    )


@dataclass(frozen=True)
class _Upload:
    """Checks and uploads one file of the folder `root`; called from many threads."""

    client: WritableHdfs
    root: Path
    target: PurePosixPath
    overwrite: bool
    keep_broken: bool

    def __call__(self, path: Path) -> tuple[Path, bool, str]:
        """Path, whether it is in HDFS now, and what is wrong with it ("" for nothing)."""
        name, reason = self.name(path), ""
        if any(word.startswith((".", "_")) for word in name.split("/")):
            return path, False, "jobs pass over names that begin with . or _: rename it"
        if ":" in name:
            return path, False, "HDFS allows no ':' in a name: rename the file"
        try:
            data = path.read_bytes()
            check_image(path, data)
        except OSError as error:
            return path, False, f"cannot be read: {error.strerror or error}"
        except NoImage as error:
            return path, False, str(error)
        except Broken as error:
            if not self.keep_broken:
                return path, False, str(error)
            reason = str(error)
        block = max(BLOCK_BYTES, -(-len(data) // MIB) * MIB)  # a picture is always one block
        self.client.write(str(self.target / name), data, self.overwrite, block)
        return path, True, reason

    def name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def check_target(self, files: Sequence[Path]) -> None:
        status = self.client.status(str(self.target))
        if status is None or self.overwrite:
            return
        if status["type"] != "DIRECTORY":
            raise JobError(f"{self.target} is a file in HDFS", remedy="name a folder")
        there = set(self.client.files_below(str(self.target)))
        if both := sorted(there.intersection(map(self.name, files))):
            raise JobError(
                f"{self.target} already holds {len(both)} of these files, {both[0]} for one",
                remedy="load into another folder, or overwrite them",
            )


@contextmanager
def hdfs_failures(doing: str) -> Iterator[None]:
    """Within, JobError where HDFS refuses what is being done, or does not answer."""
    try:
        yield
    except Refused as error:
        raise JobError(f"HDFS refused to {doing}: {error.reason}") from None
    except NoAnswer as error:
        raise JobError(
            f"HDFS does not answer at {error.address} ({error.reason})",
            remedy="`nodewise cluster status` tells whether it is up",
        ) from None


def _is_large(path: Path) -> bool:
    try:
        with Image.open(path) as image:
            return image.width >= SIZE[0] and image.height >= SIZE[1]
    except (OSError, Image.DecompressionBombError):
        return False


def _open_all(paths: Iterable[Path]) -> list[tuple[str, Image.Image]]:
    originals = []
    for path in paths:
        with Image.open(path) as image:
            originals.append((path.stem, image.convert("RGB")))
    if not originals:
        raise JobError("no photographs to make images from", remedy="install scikit-image and scikit-learn")
    return originals


def _draw(
    directory: Path, originals: Sequence[tuple[str, Image.Image]], seed: int, digits: int, number: int
) -> tuple[str, str]:
    """Name of the file it writes, and of the photograph."""
    # A generator of its own for each image, so that threads cannot change who draws what.
    chance = random.Random(f"{seed}/{number}")  # noqa: S311 images, not secrets
    name, original = originals[number % len(originals)]
    image = _recolour(_crop(original, chance), chance)
    file = f"{name}_{number:0{digits}}.jpg"
    (directory / file).write_bytes(_encode(image, chance.randint(*FILE_BYTES)))
    return file, name


def _crop(original: Image.Image, chance: random.Random) -> Image.Image:
    widest = min(original.width, original.height * SIZE[0] / SIZE[1])
    width = widest * chance.uniform(0.6, 1.0)
    height = width * SIZE[1] / SIZE[0]
    left = chance.uniform(0, original.width - width)
    top = chance.uniform(0, original.height - height)
    crop = original.resize(SIZE, Image.Resampling.LANCZOS, box=(left, top, left + width, top + height))
    return ImageOps.mirror(crop) if chance.random() < 0.5 else crop


def _recolour(image: Image.Image, chance: random.Random) -> Image.Image:
    for enhance in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
        image = enhance(image).enhance(chance.uniform(0.8, 1.2))
    return image


def _encode(image: Image.Image, most_bytes: int) -> bytes:
    """The best quality that fits, by bisection: size grows with quality."""
    low, high = QUALITIES.start, QUALITIES.stop - 1
    best = _jpeg(image, low)
    while low < high:
        middle = (low + high + 1) // 2
        tried = _jpeg(image, middle)
        if len(tried) <= most_bytes:
            low, best = middle, tried
        else:
            high = middle - 1
    return best


def _jpeg(image: Image.Image, quality: int) -> bytes:
    target = io.BytesIO()
    image.save(target, "JPEG", quality=quality, subsampling=0)
    return target.getvalue()


def _in_threads(workers: int, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Results as they are ready; the first failure, or the end of the caller, drops what has not begun."""
    pool = ThreadPoolExecutor(workers)
    try:
        futures = [pool.submit(work, item) for item in items]
        for future in as_completed(futures):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def hdfs_path(address: str, namenodes: Addresses, names: Collection[str] = ()) -> PurePosixPath:
    """The path in an address of the HDFS of these NameNodes; JobError when it is not one, or is elsewhere.

    `names` are what their hosts, or both together, are called beyond.
    """
    parts = ADDRESS.fullmatch(address)
    path = PurePosixPath(parts["path"] if parts else "")
    if not parts or not path.is_absolute() or ".." in path.parts or parts["scheme"] not in (None, "hdfs"):
        raise JobError(
            f"{address!r} is not an absolute HDFS path", remedy="write it like /data/images or hdfs:///data/images"
        )
    said = re.sub(r":\d+$", "", parts["host"] or "")
    known = [*names, *(re.sub(r":\d+$", "", urlsplit(one).netloc) for one in as_tuple(namenodes))]
    if said and said not in known:
        raise JobError(
            f"{address!r} names the HDFS at {said}, and images can go to the one at {known[0]} only",
            remedy="begin with hdfs:/// and the folder",
        )
    return path


def files_below(directory: Path) -> list[Path]:
    """All files of a folder of images, by path, less those that tell the classes; JobError when there are none."""
    if not directory.is_dir():
        raise JobError(f"{directory} is not a folder", remedy="name the folder that holds the images")
    known = {directory / labels.LABELS, directory / labels.CLASSES}
    files = sorted(path for path in directory.rglob("*") if not path.is_dir() and path not in known)
    if not files:
        raise JobError(
            f"{directory} holds no files", remedy="put images there, or make some with `nodewise images make`"
        )
    return files


def check_image(path: Path, data: bytes) -> None:
    """NoImage or Broken, with the reason, when no engine could make anything of this content."""
    jpeg = path.suffix.lower() in {".jpg", ".jpeg"} or data.startswith(b"\xff\xd8")
    try:
        with Image.open(io.BytesIO(data)) as image:
            kind = image.format
            if kind in FORMATS:
                image.load()
    except UnidentifiedImageError:
        if jpeg:
            raise Broken(f"broken JPEG: {'empty file' if not data else 'no image begins in it'}") from None
        raise NoImage("not an image") from None
    # Decoders answer damage with many kinds of exception, and a file must not stop the others.
    except Exception as error:
        raise Broken(f"broken {'JPEG' if jpeg else 'image'}: {error}") from None
    if kind not in FORMATS:
        raise NoImage(f"a {kind} image: convert it to one of {', '.join(sorted(FORMATS))}")
