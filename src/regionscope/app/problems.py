"""What is told to whoever asks for something that cannot be had."""

import json
from dataclasses import dataclass
from typing import Any

STATUS = {
    "malformed": 400, "token": 401, "foreign": 403, "unknown": 404, "method": 405, "superseded": 409, "body": 413,
    "long": 414, "refused": 422, "busy": 429, "fault": 500,
}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What is told: a status as HTTP has it, the type of the body, the body."""

    status: int
    type: str
    body: bytes

    @staticmethod
    def of_json(value: Any, status: int = 200) -> "Answer":
        """Of what is ready for JSON."""
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return Answer(status, "application/json", text.encode("utf-8", "replace"))


class Problem(Exception):
    """Why there is no answer, by its kind in `STATUS`, in a sentence for users."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    @property
    def answer(self) -> Answer:
        told = {"error": {"kind": self.kind, "message": str(self)}}
        return Answer.of_json(told, STATUS[self.kind])
