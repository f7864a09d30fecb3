"""What a release consists of: one version number, the workflow, how to cite."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import regionscope as rs

TOP = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
SUPPORTED = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)]

needs_workflow = pytest.mark.skipif(not (TOP / ".github").exists(), reason="an sdist has no workflow")


@pytest.fixture
def workflow() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((TOP / ".github" / "workflows" / "test.yml").read_text())
    return found


def commands(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def test_there_is_one_version_number() -> None:
    assert "version" in PROJECT["dynamic"] and "version" not in PROJECT
    written = [TOP / name for name in ("pyproject.toml", "CITATION.cff", "README.md", "Makefile")]
    assert [file.name for file in written if f'"{rs.__version__}"' in file.read_text()] == []
    assert re.fullmatch(r"\d+\.\d+\.\d+", rs.__version__)


@needs_workflow
def test_the_workflow_tests_the_versions_that_are_promised(workflow: dict[str, Any]) -> None:
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == SUPPORTED
    assert PROJECT["requires-python"] == f">={SUPPORTED[0]}"
    targets = set(re.findall(r"^([a-z]+):", (TOP / "Makefile").read_text(), re.MULTILINE))
    made = [word.split()[1] for job in workflow["jobs"].values() for word in commands(job) if word.startswith("make ")]
    assert made == ["test", "dist", "docs"] and set(made) <= targets


@needs_workflow
def test_only_a_tag_that_was_tested_is_published_and_without_a_password(workflow: dict[str, Any]) -> None:
    publish = workflow["jobs"]["publish"]
    assert publish["needs"] == ["test", "dist"] and publish["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert publish["permissions"] == {"id-token": "write"}
    assert "secrets." not in (TOP / ".github" / "workflows" / "test.yml").read_text()


def test_the_citation_names_the_papers() -> None:
    found = yaml.safe_load((TOP / "CITATION.cff").read_text())
    assert found["cff-version"] == "1.2.0" and found["authors"] == [{"name": "The regionscope authors"}]
    assert found["license"] == PROJECT["license"]
    assert [len(paper["authors"]) for paper in found["references"]] == [2, 2, 3]
    readme = " ".join((TOP / "README.md").read_text().split())
    for paper in found["references"]:
        assert paper["title"] in readme and paper["url"].rpartition("/")[2] in readme


def test_types_and_the_page_are_part_of_the_package() -> None:
    package = Path(rs.__file__).parent
    assert (package / "py.typed").exists() and (package / "app" / "static" / "index.html").exists()
    for folder in ("src", "tests", "docs", "examples", "benchmarks", "tools", "web"):
        assert f'"{folder}"' in (TOP / "pyproject.toml").read_text().partition("targets.sdist]")[2].partition("\n\n")[0]
