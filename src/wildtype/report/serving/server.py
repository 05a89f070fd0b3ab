"""The server of the local page: a few known paths, answered from memory.

It serves one person on one machine, and still treats every request as hostile. No path of a request reaches
the file system, and the size of a request is limited. A page of another site gets no answer: its requests
name another host or origin, or lack a content type that other sites may not send. Only the page's files run
in it.

The server uses the standard library. Measured with uvicorn: it keeps a connection that sends half a request
open without limit, so that idle clients could exhaust the connections. Here the time of a request and the
number of connections have limits.
"""

from __future__ import annotations

import contextlib
import errno
import io
import ipaddress
import json
import os
import socket
import socketserver
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, urlsplit

from wildtype.errors import ConfigError, WildtypeError, shown
from wildtype.files import finite
from wildtype.report.page import style_sheet
from wildtype.report.serving.answers import Answers

LONGEST_PATH, LONGEST_BODY, SECONDS = 2_000, 256 * 1024, 60
"""Letters of a path, bytes of a request's body, and seconds that a connection may wait for a request, a
request may take to arrive, and an answer to leave."""
MOST_CONNECTIONS = 64
"""Connections at a time, each of which takes a thread; a browser opens six."""
TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)
# Nothing loads unless a directive allows it, and then only from this server: markup injected by data could
# neither run nor send data elsewhere. Frames are forbidden against clickjacking. `trusted-types` makes
# browsers refuse `innerHTML`, so that a name from data cannot become markup by a mistake in the page's
# scripts.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    # A browser takes the declared type: a table in CSV is never guessed to be HTML or a script.
    "X-Content-Type-Options": "nosniff",
    # Another site cannot embed answers, for example as a script or an image, to read them by side channels.
    "Cross-Origin-Resource-Policy": "same-origin",
    # A page that opened this one, or was opened by it, gets no handle on its window.
    "Cross-Origin-Opener-Policy": "same-origin",
    # Links to databases of genes do not reveal the local address.
    "Referrer-Policy": "no-referrer",
    # Predictions may be unpublished: they stay out of caches of browsers and proxies.
    "Cache-Control": "no-store",
}
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FILES = ("page.html", "page.css", "page.js", "parts.js", "gene_box.js", "tables.js", "drawing.js", "icon.svg")
JSON = "application/json"

Reply = tuple[HTTPStatus, str, bytes]


class Refused(Exception):
    """A refused request: the status, and the reason in one sentence."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Server(ThreadingHTTPServer):
    """Serves the page at an address, until ``shutdown``.

    Parameters
    ----------
    answers : Answers
        The predictions that it serves.
    host : str
        Name or address of this machine to listen at.
    port : int
        0 takes any that is free.

    Raises
    ------
    ConfigError
        If there is no such address here, or the port is taken or not allowed.
    """

    # Ctrl-C ends the process at once: threads that wait for slow clients do not delay it.
    daemon_threads = True
    # Connections that the system accepts before they are taken up; 5 by default, fewer than a browser opens
    # for two pages.
    request_queue_size = 128

    def __init__(self, answers: Answers, host: str, port: int) -> None:
        self.answers, self.host = answers, host
        self.files = _files()
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._full = False
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        if not 0 <= port <= 65535:
            raise ConfigError(f"--port {port} is no port: give one up to 65535, or 0 for any that is free")
        try:
            super().__init__((host, port), Handler)
        except OSError as error:
            raise ConfigError(_why_not(error, host, port)) from error

    def server_bind(self) -> None:
        """Bind the address without `HTTPServer`'s look-up of its name, which may wait for a network."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.host, self.server_address[1]

    @property
    def url(self) -> str:
        """Address of the page for a browser."""
        # A wildcard is an address to listen at, and no address to connect to.
        anywhere = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
        host = anywhere.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}/"

    @property
    def is_local(self) -> bool:
        """Whether only programs on this machine can reach it."""
        return ipaddress.ip_address(str(self.server_address[0])).is_loopback

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread, or refuse it where too many are open."""
        if self._free.acquire(blocking=False):
            self._full = False
            try:
                super().process_request(request, client_address)
            except BaseException:  # the system starts no further thread
                self._free.release()
                raise
            return
        if not self._full:  # one sentence, however many are refused
            self._full = True
            print(
                f"wildtype: {MOST_CONNECTIONS} connections are open, and further ones are refused until some "
                f"are closed",
                file=sys.stderr,
            )
        with contextlib.suppress(OSError):
            request.settimeout(0)  # this thread accepts all others, and waits for none
            request.send(TOO_MANY)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one connection in its thread, and make its place free."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print an error in one sentence; a closed connection or an exceeded time limit is none."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            _print_error(error)


class _Incoming(socket.SocketIO):
    """The bytes that a client sends: of one request all must arrive in time, however slowly they drip.

    A time limit of every read alone would let a client send a byte a minute for ever.
    """

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection, "r")
        self._connection = connection
        self._until: float | None = None

    def next_request(self) -> None:
        """Begin to wait for a request: its time begins with its first byte."""
        self._until = None

    def readinto(self, buffer: Any) -> int | None:
        """Read what there is, within the time that is left."""
        left = float(SECONDS) if self._until is None else self._until - monotonic()
        try:
            if left <= 0:
                raise TimeoutError
            self._connection.settimeout(left)
            count = super().readinto(buffer)
        except TimeoutError:
            if self._until is not None:
                print(
                    f"wildtype: a request did not arrive within {SECONDS} s, and is cut off", file=sys.stderr
                )
            raise
        if self._until is None:
            self._until = monotonic() + SECONDS
        return count


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: Server
    # The `Server` header names no version, which would point to known weaknesses.
    server_version, sys_version = "wildtype", ""
    protocol_version = "HTTP/1.1"
    # Of every write to the socket; reads have a limit of their own.
    timeout = SECONDS

    def setup(self) -> None:
        """Prepare to read from a connection."""
        super().setup()
        self.rfile.close()
        self._incoming = _Incoming(self.connection)
        self.rfile = io.BufferedReader(self._incoming)

    def handle_one_request(self) -> None:
        """Answer one of the requests of a connection."""
        self._incoming.next_request()
        super().handle_one_request()

    def do_GET(self) -> None:
        """Answer with a file of the page, or with what needs no body."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """Answer a request with a JSON object."""
        self._answer(self._post)

    def _answer(self, reply: Callable[[str, Mapping[str, list[str]]], Reply]) -> None:
        try:
            if len(self.path) > LONGEST_PATH:
                raise Refused(
                    HTTPStatus.REQUEST_URI_TOO_LONG,
                    f"the address has {len(self.path):,} letters; up to {LONGEST_PATH:,} are read",
                )
            self._check_host()
            status, kind, body = reply(*self._path())
        except Refused as error:
            status, kind, body = error.status, JSON, _json({"error": str(error)})
            # The body may be unread, and would be taken for the next request of the connection.
            self.close_connection = True
        except WildtypeError as error:
            status, kind, body = (
                HTTPStatus.BAD_REQUEST,
                JSON,
                _json({"error": " ".join(str(error).split())}),
            )
        except (ConnectionError, TimeoutError):  # closed, or the body is shorter than its Content-Length
            self.close_connection = True
            return
        except Exception as error:
            # Details such as paths go to the terminal alone, never to the client.
            _print_error(error)
            sentence = "this could not be answered, for a reason that the terminal shows"
            status, kind, body = HTTPStatus.INTERNAL_SERVER_ERROR, JSON, _json({"error": sentence})
            self.close_connection = True
        self._send(status, kind, body)

    def _path(self) -> tuple[str, dict[str, list[str]]]:
        try:
            parts = urlsplit(self.path)
            return parts.path, parse_qs(parts.query, max_num_fields=4, errors="replace")
        except ValueError as error:
            raise Refused(HTTPStatus.BAD_REQUEST, "the address cannot be read") from error

    def _get(self, path: str, query: Mapping[str, list[str]]) -> Reply:
        # A path is only ever a key of a dictionary made at the start, so that `..`, an encoded slash or a
        # symbolic link cannot lead to another file.
        if path in self.server.files:
            return (HTTPStatus.OK, *self.server.files[path])
        if path == "/api/model":
            return HTTPStatus.OK, JSON, _json(self.server.answers.model())
        if path == "/api/complete":
            return HTTPStatus.OK, JSON, _json(self.server.answers.complete(query.get("text", [""])[0]))
        if path in _posted(self.server.answers):
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} is asked by POST")
        raise _unknown(path)

    def _post(self, path: str, query: Mapping[str, list[str]]) -> Reply:
        route = _posted(self.server.answers).get(path)
        if route is None and (path in self.server.files or path in ("/api/model", "/api/complete")):
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} is asked by GET")
        if route is None:
            raise _unknown(path)
        kind, make = route
        answer = make(self._request())
        return HTTPStatus.OK, kind, answer.encode() if isinstance(answer, str) else _json(answer)

    def _request(self) -> dict[str, Any]:
        """Return the object that was sent; raises ``Refused``."""
        # A form of another site can only send text, multipart or URL-encoded bodies; JSON needs a preflight
        # request (OPTIONS), which gets no permission here. This is the protection against forged requests.
        if self.headers.get_content_type() != JSON:
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the Content-Type must be {JSON}")
        length = self.headers.get("Content-Length", "")
        # A chunked body has no length to check before it is read.
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "the request does not say how long it is")
        # Converting millions of digits takes long, so their count is checked first.
        if len(length) > 12 or int(length) > LONGEST_BODY:
            raise Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the request has {shown(length)} bytes; up to {LONGEST_BODY:,} are read",
            )
        try:
            request = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError) as error:
            raise Refused(HTTPStatus.BAD_REQUEST, "the request is no JSON that can be read") from error
        if not isinstance(request, dict):
            raise Refused(HTTPStatus.BAD_REQUEST, "the request is no JSON object")
        return request

    def _check_host(self) -> None:
        """Refuse requests from pages of other sites.

        DNS rebinding: a hostile site lets its host name resolve to 127.0.0.1, so that the browser counts this
        server as part of that site. The name in the Host header reveals it.
        """
        hosts = self.headers.get_all("Host") or [""]
        name = _host_name(hosts[0])
        # Neither an address in digits nor ``localhost`` can be redirected by the name server of a site.
        known = {"localhost", self.server.host.lower(), socket.gethostname().lower()}
        if len(hosts) != 1 or not (name in known or _is_address(name)):
            raise Refused(
                HTTPStatus.FORBIDDEN,
                f"the host {shown(hosts[0])} is not this machine: open {self.server.url}",
            )
        # Browsers add Origin to requests that scripts of other sites send; programs such as curl omit it.
        origin = self.headers.get("Origin")
        if origin is not None and origin != f"http://{hosts[0]}":
            raise Refused(HTTPStatus.FORBIDDEN, "a page of another site gets no answers")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no request of a known method, as JSON."""
        status = HTTPStatus(code)
        if status == HTTPStatus.NOT_IMPLEMENTED:
            status = HTTPStatus.METHOD_NOT_ALLOWED
        self.close_connection = True
        sentence = "the page is read by GET and asked by POST"
        if status != HTTPStatus.METHOD_NOT_ALLOWED:
            sentence = f"this is no request that can be read ({status.phrase.lower()})"
        self._send(status, JSON, _json({"error": sentence}))

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.connection.settimeout(SECONDS)  # reading left it what remained of its time
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, POST")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log no requests: they hold unpublished gene sets."""


def _posted(answers: Answers) -> dict[str, tuple[str, Callable[[dict[str, Any]], Any]]]:
    return {
        "/api/read": (JSON, answers.read),
        "/api/predict": (JSON, answers.predict),
        "/api/nearest": (JSON, answers.nearest),
        "/api/neighbourhood": (JSON, answers.neighbourhood),
        "/api/table.csv": ("text/csv", answers.as_csv),
        "/api/table.json": (JSON, answers.as_json),
    }


def _files() -> dict[str, tuple[str, bytes]]:
    """Return the page's files by path: type and content.

    All are read once at the start; no request opens a file.
    """
    folder = resources.files("wildtype.report.serving") / "page"
    found = {name: (folder / name).read_bytes() for name in FILES}
    found["page.css"] = style_sheet("page.css").encode() + found["page.css"]
    files = {f"/{name}": (TYPES[name.rpartition(".")[2]], content) for name, content in found.items()}
    return {"/": files.pop("/page.html"), **files}


def _unknown(path: str) -> Refused:
    return Refused(HTTPStatus.NOT_FOUND, f"there is nothing at {shown(path)}")


def _json(value: Any) -> bytes:
    return json.dumps(finite(value), allow_nan=False).encode()


def _host_name(host: str) -> str:
    """Return the name in a Host header, without its port and, of an address, without brackets."""
    name, colon, port = host.rpartition(":")
    whole = name if colon and port.isdigit() else host
    return whole.removeprefix("[").removesuffix("]").lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _why_not(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is taken: choose another with --port, or --port 0 for any that is free"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"port {port} of {host} needs more rights than this program has: choose one above 1023"
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"{shown(host)} is no address of this machine: give --host 127.0.0.1, or leave it out"
    return f"the page cannot be served at {shown(host)}, port {port}: {error.strerror or error}"


def _print_error(error: BaseException | None) -> None:
    """Print the error of a request on the terminal of the server."""
    if error is not None and os.environ.get("WILDTYPE_DEBUG"):
        traceback.print_exception(error)
    print(f"wildtype: a request failed: {type(error).__name__}: {error}", file=sys.stderr)
