"""Take pictures of the pages of a run, light and dark, wide and narrow.

    python -m tools.pictures RUN FOLDER

FOLDER gets the report and the page of `wildtype serve` at 390, 1,280 and 1,920 pixels, for looking at, and
`docs/images` the top of those that documents show. Needs Chromium (`make browser`).
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tests.browser import Browser
from wildtype.inference.predictor import load

DOCUMENTS = Path(__file__).parents[1] / "docs" / "images"
SIZES = {390: 844, 1280: 900, 1920: 1080}
KEPT = {("report", 1280, False): 1500, ("serve", 1280, False): 1500, ("serve", 390, True): 1300}
"""Page, width and whether it is dark of what documents show, and how much of its height."""

READY = {
    "report": "document.querySelector('table')",
    "serve": "document.querySelector('#nearest table') && document.querySelector('#drawing svg')",
}


def main(run: Path, folder: Path) -> None:
    """Take all pictures."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("no chromium on the PATH: make browser")
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as profile,
        served(run) as address,
        Browser(chromium, Path(profile)) as page,
    ):
        report = (run / "report.html").absolute().as_uri()
        pages = {"report": report, "serve": f"{address}#{asked(run)}&interval=0.9"}
        for (name, url), width, dark in product(pages.items(), SIZES, (False, True)):
            page.window(width, SIZES[width], dark=dark)
            page.open(url)
            page.until(READY[name])
            stem = f"{name}-{width}-{'dark' if dark else 'light'}"
            page.look(folder / f"{stem}.png")
            if (most := KEPT.get((name, width, dark))) is not None:
                picture(page, DOCUMENTS / f"{stem}.webp", width, most)
        for problem in page.problems:
            print(problem)


def asked(run: Path) -> str:
    """Return the pairs with the strongest measurements on both sides, as in an address of the page."""
    predictor = load(run)
    rows, genes = predictor.trained, predictor.checkpoint.genes.names
    value = np.where(rows.order == 2, rows.value, 0)
    sets = rows.sets()
    names = [",".join(genes[gene] for gene in sets[at]) for at in (value.argmin(), value.argmax())]
    return "&".join(f"mutant={name}" for name in names)


@contextmanager
def served(run: Path) -> Iterator[str]:
    """Serve a run; the address is on the first line that the command prints."""
    words = [sys.executable, "-m", "wildtype", "serve", str(run), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        try:
            for line in server.stdout:
                found: list[Any] = [word for word in line.split() if word.startswith("http://")]
                if found:
                    yield found[0].rstrip(".,:")
                    break
            else:
                raise SystemExit(f"{run} is not served")
        finally:
            server.terminate()


def picture(page: Browser, path: Path, width: int, most: int) -> None:
    """Write the top of the page (WebP)."""
    height = min(page.call("Page.getLayoutMetrics")["cssContentSize"]["height"], most)
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    how = {"format": "webp", "quality": 70, "captureBeyondViewport": True}
    path.write_bytes(base64.b64decode(page.call("Page.captureScreenshot", clip=clip, **how)["data"]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
