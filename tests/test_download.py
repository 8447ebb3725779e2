"""Downloads from a server on this machine that does what it likes."""

import errno
import gzip
import hashlib
import io
import lzma
import os
import shutil
import signal
import ssl
import subprocess
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gridlstm.cache import cache_folder
from gridlstm.data import download
from gridlstm.data.locate import DataError, Packing, Source, find

OPENSSL = shutil.which("openssl")
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="needs openssl, for a certificate")

PLAIN = b"Twelve boxers chase a quick brown fox.\n" * 200
PACK: dict[Packing, Callable[[bytes], bytes]] = {
    "": bytes,
    ".xz": lzma.compress,
    ".gz": gzip.compress,
}
HTTP = "HTTP/1.1 200 OK\r\nConnection: close\r\n"


class Site(ThreadingHTTPServer):
    """Answers every request by ``answer``, which is given the connection to write to."""

    daemon_threads = True
    answer: Callable[["Site", "Handler"], None]
    asked: list[str]
    over = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Says nothing: clients that hang up are what is tested."""

    def source(self, packing: Packing = "") -> Source:
        address = f"https://localhost:{self.server_port}/boxers{packing}"
        return Source("boxers/boxers", len(PLAIN), hashlib.sha256(PLAIN).hexdigest(), address, packing)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.answer(self)

    def log_message(self, *_: object) -> None:
        pass

    def send(self, *parts: str | bytes) -> None:
        for part in parts:
            self.wfile.write(part.encode() if isinstance(part, str) else part)
            self.wfile.flush()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a server on this machine, with its key."""
    path = tmp_path_factory.mktemp("certificate") / "server.pem"
    subprocess.run(
        [
            *(OPENSSL, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", path, "-out", path.with_suffix(".crt")),
        ],
        check=True,
        capture_output=True,
    )
    path.write_bytes(path.read_bytes() + path.with_suffix(".crt").read_bytes())
    return path


@pytest.fixture
def site(certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    server = Site(("127.0.0.1", 0), Handler)
    server.asked = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_suffix(".crt")))
    monkeypatch.setenv("GRIDLSTM_CACHE", str(tmp_path / "cache"))
    for name in ("GRIDLSTM_DATA", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield server
    server.over = True
    server.shutdown()
    thread.join()
    server.server_close()


def kept() -> list[Path]:
    """What is in the cache but for remembered checksums."""
    return [path for path in cache_folder().rglob("*") if path.is_file() and path.parent.name != "sums"]


def whole(handler: Handler) -> None:
    """The file, packed as the address says."""
    suffix = Path(handler.path).suffix
    content = zipped() if suffix == ".zip" else PACK[suffix](PLAIN)
    handler.send(HTTP, f"Content-Length: {len(content)}\r\n\r\n", content)


def zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("boxers", PLAIN)
    return packed.getvalue()


@pytest.mark.parametrize("packing", ["", ".xz", ".gz", ".zip"])
def test_downloaded_once(packing: Packing, site: Site) -> None:
    site.answer = whole
    path = find(site.source(packing))
    assert path.read_bytes() == PLAIN
    assert kept() == [path]
    assert find(site.source(packing)) == path
    assert site.asked == [f"/boxers{packing}"]


def test_a_download_shows_its_progress_on_a_terminal_only(site: Site, monkeypatch, capsys) -> None:
    site.answer = whole
    find(site.source()).unlink()
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    find(site.source())
    assert "boxers/boxers" in capsys.readouterr().err


def test_a_damaged_file_in_the_cache_is_made_anew(site: Site) -> None:
    site.answer = whole
    path = find(site.source())
    path.write_bytes(PLAIN[:-1])
    assert find(site.source()).read_bytes() == PLAIN
    path.write_bytes(PLAIN[::-1])
    assert find(site.source()).read_bytes() == PLAIN
    assert len(site.asked) == 3


def test_redirected_to_another_address(site: Site) -> None:
    def moved(handler: Handler) -> None:
        if handler.path == "/boxers":
            handler.send("HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")
        else:
            whole(handler)

    site.answer = moved
    assert find(site.source()).read_bytes() == PLAIN
    assert site.asked == ["/boxers", "/elsewhere"]


def endlessly(
    *start: str | bytes, every: float = 0.0, block: bytes = b"x"
) -> Callable[[Handler], None]:
    """Sends the start, and then blocks until the client has hung up."""

    def answer(handler: Handler) -> None:
        handler.send(*start)
        while not handler.server.over:
            handler.send(block)
            time.sleep(every)

    return answer


def sends(*parts: str | bytes) -> Callable[[Handler], None]:
    return lambda handler: handler.send(*parts)


def redirects(to: str) -> Callable[[Handler], None]:
    return sends(f"HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")


LENGTH = f"Content-Length: {len(PLAIN)}\r\n\r\n"
BAD = {
    "endless": (
        endlessly(HTTP, "\r\n", block=bytes(2**16)),
        r"not downloaded.*\(expected at most 8878 bytes, got more\)",
    ),
    "endless chunks": (
        endlessly(
            HTTP, "Transfer-Encoding: chunked\r\n\r\n", block=b"1000\r\n" + bytes(4096) + b"\r\n"
        ),
        r"not downloaded.*\(expected at most 8878 bytes, got more\)",
    ),
    "says it is huge": (
        sends(HTTP, "Content-Length: 1000000000000\r\n\r\n"),
        r"not downloaded.*\(expected at most 8878 bytes, got 1000000000000\)",
    ),
    "dribbles": (
        endlessly(HTTP, LENGTH, every=0.02),
        r"not downloaded.*(not done after|timed out)",
    ),
    "dribbles before it begins": (
        endlessly("HTTP/1.1 200 ", every=0.02),
        r"not downloaded.*(not done after|timed out)",
    ),
    "says nothing": (endlessly(every=0.02, block=b""), r"not downloaded.*time"),
    "closes early": (
        sends(HTTP, LENGTH, PLAIN[:5000]),
        r"not downloaded.*\(truncated: expected 7800 bytes, got 5000\)",
    ),
    "closes early between chunks": (
        sends(HTTP, "Transfer-Encoding: chunked\r\n\r\n1388\r\n", PLAIN[:5000], "\r\n"),
        r"not downloaded.*IncompleteRead",
    ),
    "closes at once": (sends(), r"not downloaded.*closed connection without response"),
    "no web server": (sends("SSH-2.0-OpenSSH_9.2\r\n"), r"not downloaded.*\(SSH-2.0"),
    "no such file": (sends("HTTP/1.1 404 Not Found\r\n\r\n"), r"not downloaded.*\(Not Found\)"),
    "too short": (
        sends(HTTP, "\r\n", PLAIN[:-9]),
        r"boxers: truncated: expected 7800 bytes, got 7791$",
    ),
    "no length": (
        sends(HTTP, "Content-Length: many\r\n\r\n", PLAIN[:-9]),
        r"boxers: truncated: expected 7800 bytes, got 7791$",
    ),
    "too long": (
        sends(HTTP, "\r\n", PLAIN, b"."),
        r"boxers: changed: expected 7800 bytes, got more$",
    ),
    "another": (
        sends(HTTP, LENGTH, PLAIN[::-1]),
        r"boxers: changed: expected sha256 [0-9a-f]{64}, got",
    ),
    "to http": (
        redirects("http://localhost/"),
        r"redirected to http://localhost/, which does not begin",
    ),
    "to a file": (redirects("file:///etc/passwd"), r"file:///etc/passwd' is not allowed"),
    "in a circle": (redirects("/boxers"), r"not downloaded.*(infinite loop|Found)"),
}


@pytest.mark.parametrize("how", BAD)
def test_a_bad_download_leaves_nothing(how: str, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.answer, message = BAD[how]
    if "dribbles" in how or how == "says nothing":
        monkeypatch.setattr(download, "DEADLINE", 0.5)
    with pytest.raises(DataError, match=message) as caught:
        find(site.source())
    assert "\n" not in str(caught.value)
    assert not kept()


def test_an_address_that_is_not_https(site: Site) -> None:
    source = Source("a/b", 1, "0", site.source().address.replace("https", "http"))
    with pytest.raises(DataError, match="expected an address that begins with https:, got http:"):
        find(source)
    assert not site.asked


def test_a_server_that_nobody_vouches_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.answer = whole
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(DataError, match=r"not downloaded.*certificate verify failed"):
        find(site.source())
    assert not kept()


def test_an_interrupted_download_leaves_nothing(site: Site) -> None:
    def interrupt(handler: Handler) -> None:
        handler.send(HTTP, LENGTH, PLAIN[:5000])
        os.kill(os.getpid(), signal.SIGINT)
        endlessly(every=0.02, block=b"")(handler)

    site.answer = interrupt
    with pytest.raises(KeyboardInterrupt):
        find(site.source())
    assert not kept()


def test_a_full_disk(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    site.answer = whole
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match=r"boxers: cannot be written \(No space left on device\)$"):
        find(site.source())
    assert not kept()
