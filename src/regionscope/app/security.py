"""Who may ask: holders of the token, under the names of this machine, from no other site; and what pages may do."""

import secrets
from collections.abc import Collection
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regionscope.app.problems import Answer, Problem

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self';"
    " font-src 'self'; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin", "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}  # fmt: skip
OWN = ("same-origin", "none")  # what browsers say of requests that no other site has made


class Guard:
    """Stands before an application: lets nothing through that does not hold the token."""

    def __init__(self, app: ASGIApp, *, token: str, hosts: Collection[str]) -> None:
        """`hosts` are the names, with the port, under which the server may be asked."""
        self.app, self.token, self.hosts = app, token.encode(), frozenset(hosts)
        port = max((host.rpartition(":")[2] for host in hosts), default="")
        self.cookie = f"regionscope-{port}"  # cookies of one host are shared by its ports

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and answer it, or pass it on."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] == "websocket":  # there are none
            return await send({"type": "websocket.close", "code": 1008})
        try:
            self._check(scope)
            shown = self._shown_token(scope)
            if not self._is_token(shown) and not self._is_token(self._kept_token(scope)):
                raise Problem("token", "open the address that `regionscope view` printed: it has the token")
        except Problem as problem:
            return await _send_answer(problem.answer, {"connection": "close"}, send)
        if shown is not None:
            return await _send_answer(Answer(303, "text/plain", b""), self._way_in(scope), send)
        return await self.app(scope, receive, _guarded(send))

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        names = headers.getlist("host")
        if len(names) != 1 or names[0].lower() not in self.hosts:
            raise Problem("foreign", f"the explorer answers as {' or '.join(sorted(self.hosts))} only")
        if scope["method"] not in ("GET", "HEAD"):
            raise Problem("method", f"the explorer can only be read: GET, not {scope['method'][:20]}")
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            raise Problem("body", "questions have no body")
        origins = {f"http://{host}" for host in self.hosts}
        entering = scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate"  # a link to the page
        from_elsewhere = headers.get("sec-fetch-site", "none") not in OWN and not entering
        if from_elsewhere or any(origin.lower() not in origins for origin in headers.getlist("origin")):
            raise Problem("foreign", "another site may not ask the explorer")

    def _shown_token(self, scope: Scope) -> str | None:
        """The token in the address, which only the page may have."""
        if scope["path"] != "/":
            return None
        return dict(_parameters(scope)).get("token")

    def _kept_token(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return given.strip()
        pairs = (pair.strip().partition("=") for line in headers.getlist("cookie") for pair in line.split(";"))
        return next((value for name, _, value in pairs if name == self.cookie), None)

    def _is_token(self, text: str | None) -> bool:
        return text is not None and secrets.compare_digest(text.encode("utf-8", "replace"), self.token)

    def _way_in(self, scope: Scope) -> dict[str, str]:
        """Where the page is without the token in its address; from now on the browser keeps it."""
        rest = urlencode([(name, value) for name, value in _parameters(scope) if name != "token"])
        kept = f"{self.cookie}={self.token.decode()}; Path=/; HttpOnly; SameSite=Strict"
        return {"location": f"/?{rest}" if rest else "/", "set-cookie": kept, "cache-control": "no-store"}


def _parameters(scope: Scope) -> list[tuple[str, str]]:
    try:
        return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=20)
    except ValueError as error:
        raise Problem("malformed", f"this address cannot be read: {error}") from None


def _guarded(send: Send) -> Send:
    """Adds to every answer what a page may do."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(HEADERS)
        await send(message)

    return guarded


async def _send_answer(answer: Answer, headers: dict[str, str], send: Send) -> None:
    told = {"content-type": answer.type, "content-length": str(len(answer.body)), **headers}
    pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in told.items()]
    guarded = _guarded(send)
    await guarded({"type": "http.response.start", "status": answer.status, "headers": pairs})
    await guarded({"type": "http.response.body", "body": answer.body})
