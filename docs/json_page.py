"""Makes the tables of `json.md` from `json-schema.json`: python docs/json_page.py"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PAGE = FOLDER / "json.md"
MARK = "<!-- tables -->\n"
SCHEMA: dict[str, Any] = json.loads((FOLDER / "json-schema.json").read_text())
WORDS = {"string": "text", "number": "number", "integer": "whole number", "boolean": "true or false", "null": "null"}
OPTION = re.compile(r"(?<![\w`-])--[a-z][\w-]*")
Schema = Mapping[str, Any]


def tables() -> str:
    """A section a definition: what it is, and a row a field; options of the command line are code."""
    sections = (f"## {name}\n\n{_body(schema)}" for name, schema in SCHEMA["$defs"].items())
    return OPTION.sub(r"`\g<0>`", "\n".join(sections))


def kind(schema: Schema) -> str:
    """What type of JSON a schema allows, in words.

    >>> kind({"type": "array", "items": {"type": ["number", "null"]}})
    'list of number or null'
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name})"
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    return " or ".join(_word(name, schema) for name in kinds)


def _word(name: str, schema: Schema) -> str:
    if name == "array":
        return f"list of {kind(schema['items'])}"
    if name == "object":
        values = schema.get("additionalProperties")
        return f"object of {kind(values)}" if values else "object"
    return WORDS[name]


def _body(schema: Schema) -> str:
    if "anyOf" in schema:
        forms = "".join(f"\n{_body(form)}" for form in schema["anyOf"])
        return f"{schema['description']}\n{forms}"
    said = schema.get("description", "")
    if "$ref" in schema:
        return f"{said} See {kind(schema)}.\n".lstrip()
    if schema["type"] == "array":
        inside = schema["items"]
        return f"A list. {said}\n\n{_fields(inside)}" if "properties" in inside else f"A {kind(schema)}. {said}\n"
    return f"{said}\n\n{_fields(schema)}"


def _fields(schema: Schema) -> str:
    return "\n".join(["| field | type | |", "|---|---|---|", *_rows(schema)]) + "\n"


def _rows(schema: Schema) -> Iterator[str]:
    for name, field in schema["properties"].items():
        often = "" if name in schema["required"] else "optional"
        said = field.get("description", "")
        choice = f"{said}: {', '.join(field['enum'])}" if "enum" in field else said
        yield f"| `{name}` | {kind(field)} | {': '.join(filter(None, [often, choice]))} |"
    if others := schema["additionalProperties"]:
        yield f"| any other name | {kind(others)} | {others['description']} |"


def page() -> str:
    """The page as it should be: its beginning as it is, and the tables."""
    return PAGE.read_text().partition(MARK)[0] + MARK + "\n" + tables()


if __name__ == "__main__":
    PAGE.write_text(page())
