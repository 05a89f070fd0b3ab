"""A publisher's server on this machine, with the habits and faults of real ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Page:
    """What the server gives at one path.

    `cut` lists, attempt by attempt, after how many bytes the connection breaks; `status` the codes that come
    first; `ranges` says whether parts may be asked for.
    """

    content: bytes = b""
    etag: str = '"v1"'
    ranges: bool = True
    cut: list[int] = field(default_factory=list)
    status: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    length: bool = True
    redirect: str = ""
    agent: str = ""


@dataclass
class Server:
    """Its pages, its address, and what it was asked: path, ``Range`` and ``User-Agent``."""

    pages: dict[str, Page] = field(default_factory=dict)
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    address: str = ""

    def url(self, path: str) -> str:
        return self.address + path

    def ranges(self, path: str) -> list[str]:
        return [span for where, span, _ in self.asked if where == path]


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def answer(self, status: int, body: bytes, headers: dict[str, str], *, length: bool = True) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if length:
                self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True

        def do_GET(self) -> None:
            span = self.headers.get("Range", "")
            server.asked.append((self.path, span, self.headers.get("User-Agent", "")))
            page = server.pages.get(self.path)
            if page is None:
                self.answer(404, b"", {})
                return
            if page.status:
                self.answer(page.status.pop(0), b"", page.headers)
                return
            if page.redirect:
                self.answer(302, b"", {"Location": page.redirect})
                return
            if page.agent and page.agent != self.headers.get("User-Agent"):
                self.answer(403, b"", {})
                return
            status, body, headers = 200, page.content, dict(page.headers)
            if page.etag:
                headers["ETag"] = page.etag
            current = self.headers.get("If-Range", page.etag) == page.etag
            if span and page.ranges and current:
                start = int(span.removeprefix("bytes=").rstrip("-"))
                if start >= len(page.content):
                    self.answer(416, b"", {"Content-Range": f"bytes */{len(page.content)}"})
                    return
                status, body = 206, page.content[start:]
                last = len(page.content) - 1
                headers["Content-Range"] = f"bytes {start}-{last}/{len(page.content)}"
            self.answer(status, body, headers, length=page.length)
            if page.cut:
                body = body[: page.cut.pop(0)]
            self.wfile.write(body)

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.address = f"http://127.0.0.1:{httpd.server_address[1]}"
    thread = threading.Thread(target=lambda: httpd.serve_forever(poll_interval=0.01), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()
