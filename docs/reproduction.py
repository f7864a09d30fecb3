"""Writes docs/reproduction.md from the findings and pictures in docs/reproduction/.

`python docs/reproduction.py OUT` first brings the findings of `regionscope reproduce --out OUT` at laptop scale there,
with pictures small enough to be kept.
"""

import shutil
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
from PIL import Image

from regionscope.experiments.findings import Findings
from regionscope.experiments.page import reproduction_page
from regionscope.experiments.registry import EXPERIMENTS

DOCS = Path(__file__).parent
FOLDER = DOCS / "reproduction"
DOTS, COLOURS = 120, 256  # an inch; of a picture


def page() -> str:
    return reproduction_page([Findings.load(file) for file in sorted(FOLDER.glob("*.json"))], FOLDER.name)


def bring(file: Path) -> None:
    """Findings, the arrays that belong to them, and their picture."""
    for part in (file, file.with_suffix(".npz")):
        if part.exists():
            shutil.copy(part, FOLDER / part.name)
    found, picture = Findings.load(file), FOLDER / f"{file.stem}.png"
    figure = EXPERIMENTS[found.name].draw(found)
    figure.savefig(picture, dpi=DOTS)
    plt.close(figure)
    with Image.open(picture) as image:
        fewer = image.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
    fewer.save(picture, optimize=True)


def main() -> None:
    matplotlib.use("agg")
    FOLDER.mkdir(exist_ok=True)
    for out in sys.argv[1:]:
        for file in sorted(Path(out, "findings", "laptop").glob("*.json")):
            bring(file)
    (DOCS / "reproduction.md").write_text(page())


if __name__ == "__main__":
    main()
