"""Downloads: over https only, limited in size and time."""

import ssl
import time
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

__all__ = ["DEADLINE", "TIMEOUT", "Download"]

TIMEOUT = 30.0
"""Seconds without an answer after which a download fails."""
DEADLINE = 1800.0
"""Seconds after which a download fails, however much has arrived."""


class Download:
    """The content of an address, to be read once.

    Args:
        address: the address. It and all redirections must start with ``https:``.
        limit: the maximum number of bytes.

    Attributes:
        length: the number of bytes according to the server; ``None`` if it does not say.

    Raises:
        OSError: if there is no answer, or the content is too long.
        http.client.HTTPException: if the answer is not that of a web server.
    """

    def __init__(self, address: str, limit: int) -> None:
        if not _secure(address):
            raise URLError(f"expected an address that begins with https:, got {address}")
        context = _make_context(time.monotonic() + DEADLINE)
        opener = build_opener(HTTPSHandler(context=context), _Redirect())
        request = Request(address, headers={"User-Agent": "gridlstm"})  # Some servers refuse Python's.
        try:
            self._response = opener.open(request, timeout=TIMEOUT)
        except HTTPError as error:
            error.close()  # It holds the connection.
            raise
        self._limit, self._got = limit, 0
        self.length: int | None = self._response.length
        if self.length is not None and self.length > limit:
            self._response.close()
            raise self._too_long(f"{self.length}")

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most ``size``; empty at the end.

        Raises:
            OSError: if they do not arrive in time, are too many, or end early.
            http.client.HTTPException: if they end early.
        """
        block: bytes = self._response.read(size)
        self._got += len(block)
        if self._got > self._limit:
            raise self._too_long("more")
        if not block and self._got < (self.length or 0):  # An early close looks like the end.
            raise OSError(f"truncated: expected {self.length} bytes, got {self._got}")
        return block

    def __enter__(self) -> "Download":
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()

    def _too_long(self, got: str) -> OSError:
        return OSError(f"expected at most {self._limit} bytes, got {got}")


class _Redirect(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        if not _secure(newurl):
            fp.close()
            raise URLError(f"redirected to {newurl}, which does not begin with https:")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _secure(address: str) -> bool:
    return address.lower().startswith("https:")


def _make_context(end: float) -> ssl.SSLContext:
    """A context that verifies the server and fails after ``end``, in monotonic time.

    With a timeout alone a server could send a byte now and then, for ever.
    """

    class DeadlineSocket(ssl.SSLSocket):
        def recv_into(self, *args: Any, **kwargs: Any) -> int:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"not done after {DEADLINE:g} seconds")
            self.settimeout(min(TIMEOUT, left))
            return super().recv_into(*args, **kwargs)

    context = ssl.create_default_context()
    context.sslsocket_class = DeadlineSocket
    return context
