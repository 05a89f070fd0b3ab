from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.command import assert_one_sentence, wildtype
from wildtype.report.serving.server import Server


@pytest.fixture
def stopped_at_once(monkeypatch: pytest.MonkeyPatch) -> list[Server]:
    """Servers that were started, each stopped by Ctrl-C before its first request."""
    started: list[Server] = []

    def interrupted(self: Server) -> None:
        started.append(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve_forever", interrupted)
    return started


def test_it_says_where_the_page_is_and_ctrl_c_ends_it(
    tiny_run: Path, stopped_at_once: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    said = wildtype("serve", str(tiny_run), "--port", "0", "--open")
    (server,) = stopped_at_once
    assert said.returncode == 130
    assert said.stdout == f"serving {tiny_run} at {server.url} until Ctrl-C\n"
    assert said.stderr.split() == ["wildtype:", "stopped"]
    assert opened == [server.url]
    assert server.url == f"http://127.0.0.1:{server.server_port}/"
    assert server.socket.fileno() == -1


def test_other_addresses_are_warned_of(tiny_run: Path, stopped_at_once: list[Server]) -> None:
    said = wildtype("serve", str(tiny_run), "--port", "0", "--host", "0.0.0.0")
    assert "whoever reaches this machine at 0.0.0.0 can use the page" in said.stderr
    assert f"http://127.0.0.1:{stopped_at_once[0].server_port}/" in said.stdout
    quiet = wildtype("serve", str(tiny_run), "--port", "0", "--host", "localhost")
    assert "whoever" not in quiet.stderr


def test_what_cannot_be_served_is_one_sentence(tiny_run: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        assert_one_sentence(wildtype("serve", str(tiny_run), "--port", port), port, "taken", "--port 0")
    assert_one_sentence(wildtype("serve", str(tiny_run), "--port", "-1"), "--port -1")
    assert_one_sentence(wildtype("serve", str(tiny_run), "--host", "no such host"), "no such host")
    assert_one_sentence(wildtype("serve", str(tmp_path)), "holds no checkpoint")
    missing = wildtype("serve", str(tiny_run), "--evidence", str(tmp_path / "none.csv"))
    assert_one_sentence(missing, "none.csv")
