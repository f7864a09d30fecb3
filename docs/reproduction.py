"""Writes docs/reproduction.md from the findings and pictures in docs/reproduction/.

`python docs/reproduction.py OUT` first brings the findings of `regionscope reproduce --out OUT` at laptop scale there.
"""

import shutil
import sys
from pathlib import Path

from regionscope.experiments.findings import Findings
from regionscope.experiments.page import reproduction_page

DOCS = Path(__file__).parent
FOLDER = DOCS / "reproduction"


def page() -> str:
    return reproduction_page([Findings.load(file) for file in sorted(FOLDER.glob("*.json"))], FOLDER.name)


def main() -> None:
    for out in sys.argv[1:]:
        FOLDER.mkdir(exist_ok=True)
        for file in sorted(Path(out, "findings", "laptop").glob("*.*")):
            shutil.copy(file, FOLDER / file.name)
    (DOCS / "reproduction.md").write_text(page())


if __name__ == "__main__":
    main()
