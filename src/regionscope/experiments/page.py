"""What was found, in words: one experiment for a terminal, all of them as a table, and as a page of the docs."""

from collections.abc import Mapping, Sequence
from typing import Any

from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import VERDICTS, Check, Findings
from regionscope.experiments.registry import EXPERIMENTS, PAPERS, paper_of
from regionscope.tables import how_many

INTRODUCTION = """# The papers, reproduced

Every figure is one command. The verdict follows from rules that were written down with the claim before anything was
run; a number passes a rule if its mean over the seeds does so by more than the standard error of that mean. Settings
are the papers' own where nothing else is said. Durations are those of one process after another on two shared cores.
`docs/reproduction.py` makes this page from the files beside it.
"""


def account(findings: Findings) -> str:
    """The claim beside what was found, for a terminal."""
    lines = [f"{findings.name}: {findings.claim}", *(f"  {_check_in_words(check)}" for check in findings.checks)]
    lines += [f"  not as in the paper: {deviation}" for deviation in findings.deviations]
    return "\n".join(
        [*lines, f"  {how_many(len(findings.seeds), 'seed')}, {_duration(findings.seconds)}: {findings.verdict}"]
    )


def _check_in_words(check: Check) -> str:
    """A check in one line: yes, no, ? where it cannot be said, and - for what is only told."""
    mark = {True: "yes", False: "no ", None: "?  "}[check.holds] if check.rule else "-  "
    rule = f" ({check.rule})" if check.rule else ""
    paper = f"; paper: {check.paper}" if check.paper else ""
    return f"{mark} {check.words}: {check.why or _number(check)}{rule}{paper}"


def _number(check: Check) -> str:
    if check.found is None:
        return "no number"
    return f"{check.found:.3g}" + ("" if check.error is None else f" ± {check.error:.2g}")


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def listing(experiments: Sequence[Experiment[Any]], found: Mapping[str, Findings]) -> list[list[str]]:
    """A table: figure, claim, verdict, duration, for what was found already."""
    rows = [["figure", "verdict", "duration", "claim"]]
    for experiment in experiments:
        known = found.get(experiment.name)
        told = [known.verdict, _duration(known.seconds)] if known else ["-", "-"]
        rows.append([experiment.name, *told, experiment.claim])
    return rows


def reproduction_page(found: Sequence[Findings], pictures: str) -> str:
    """The page: a summary across papers, a table of figures, and a section each; the pictures lie in a folder."""
    known = {findings.name: findings for findings in found}
    order = [name for name in EXPERIMENTS if name in known]
    table = [["", "figure", "verdict", "seeds", "duration", "claim"]]
    table += [
        [
            f"[![{n}]({pictures}/{n}.png)](#{n})", f"[{n}](#{n})", known[n].verdict, str(len(known[n].seeds)),
            _duration(known[n].seconds), known[n].claim,
        ]
        for n in order
    ]  # fmt: skip
    sections = []
    for paper, title in PAPERS.items():
        own = [_section(known[name], pictures) for name in order if paper_of(name) == paper]
        sections += [f"## {title}\n", *own] if own else []
    left = [name for name in EXPERIMENTS if name not in known]
    missing = [f"Not run yet: {', '.join(left)}; `regionscope reproduce NAME` does.", ""] if left else []
    return "\n".join([INTRODUCTION, _markdown(_summary(known)), "", _markdown(table), "", *missing, *sections])


def _summary(known: Mapping[str, Findings]) -> list[list[str]]:
    """How often each verdict was reached, by paper."""
    rows = [["paper", *VERDICTS]]
    for paper, title in PAPERS.items():
        verdicts = [f.verdict for name, f in known.items() if paper_of(name) == paper]
        if verdicts:
            rows.append([title, *(str(verdicts.count(verdict)) for verdict in VERDICTS)])
    return rows


def _section(findings: Findings, pictures: str) -> str:
    experiment = EXPERIMENTS[findings.name]
    rows = [["what", "paper", "found", "rule", "holds"]]
    for check in findings.checks:
        holds = {True: "yes", False: "no", None: check.why or "?"}[check.holds] if check.rule else ""
        rows.append([check.words, check.paper, "" if check.why else _number(check), check.rule, holds])
    versions = ", ".join(f"{name} {version}" for name, version in findings.versions.items())
    notes = [
        *(f"- Not as in the paper: {deviation}." for deviation in findings.deviations),
        *(f"- Our choice: {choice}." for choice in findings.choices),
        f"- Seeds {', '.join(map(str, findings.seeds))}; {_duration(findings.seconds)}; {versions}.",
    ]
    return "\n".join([
        f"### {findings.name}", "", f"{experiment.title}.", "", f"**Claim.** {findings.claim}", "",
        f"**Verdict at {findings.scale} scale: {findings.verdict}.**", "",
        f"![{findings.name}]({pictures}/{findings.name}.png)", "", _markdown(rows), "", *notes, "",
        "```sh", findings.command, "```", "",
    ])  # fmt: skip


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *body = (f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])
