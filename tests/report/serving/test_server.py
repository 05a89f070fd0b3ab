from __future__ import annotations

import http.client
import io
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import wildtype as wt
from wildtype.errors import ConfigError
from wildtype.inference.predictor import Predictor
from wildtype.report.serving import server as serving_module
from wildtype.report.serving.answers import GENES, MUTANTS, Answers
from wildtype.report.serving.server import FILES, LONGEST_BODY, Server

HOSTILE = "<img src=x onerror=alert(1)>\"'\u2028\ud800=1+1"


@contextmanager
def serving(answers: Answers) -> Iterator[Server]:
    with Server(answers, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def predictor(tiny_run: Path) -> Predictor:
    return wt.load(tiny_run)


@pytest.fixture(scope="module")
def server(predictor: Predictor) -> Iterator[Server]:
    with serving(Answers(predictor, "tiny")) as server:
        yield server


class Reply:
    """What the server said."""

    def __init__(self, server: Server, method: str, path: str, body: Any = None, **headers: str) -> None:
        line = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
        sent = {"Content-Type": "application/json"} if body is not None else {}
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        line.request(method, path, data, sent | {k.replace("_", "-"): v for k, v in headers.items()})
        answer = line.getresponse()
        self.status, self.headers, self.body = answer.status, answer.headers, answer.read()
        line.close()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def assert_sentence(self, status: int, *needles: str) -> None:
        assert self.status == status, self.body
        assert set(self.json) == {"error"}
        sentence = self.json["error"]
        assert "\n" not in sentence
        for needle in needles:
            assert needle in sentence


def test_the_page_is_served_with_a_strict_policy(server: Server) -> None:
    page = Reply(server, "GET", "/")
    assert page.status == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Cache-Control"] == "no-store"
    text = page.body.decode()
    assert not re.search(r"https?:|<script>|\son\w+=|\sstyle=", text)
    for name in re.findall(r'(?:src|href)="/([^"]+)"', text):
        assert Reply(server, "GET", f"/{name}").status == 200
    style = Reply(server, "GET", "/page.css")
    assert style.headers["Content-Type"] == "text/css; charset=utf-8"
    assert b".scroll{" in style.body  # the style of all pages
    assert b".chip{" in style.body


def test_scripts_never_make_markup_of_texts(server: Server) -> None:
    for name in FILES:
        if name.endswith(".js"):
            text = Reply(server, "GET", f"/{name}").body.decode()
            assert not re.search(
                r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|https?:(?!//www\.w3)", text
            )
            assert all(f"{file}" in FILES for file in re.findall(r'from "\./([^"]+)"', text))


def test_model_says_what_there_is_to_choose(server: Server) -> None:
    model = Reply(server, "GET", "/api/model").json
    assert model["name"] == "tiny"
    assert model["genes"] == 24
    assert [p["name"] for p in model["phenotypes"]] == ["epsilon"]
    assert model["conditions"] == ["reference"]
    assert model["kinds"] == ["absent", "reduced"]
    assert model["intervals"] is True
    assert model["fitness"] is True
    assert model["relations"] == ["physical", "regulatory"]
    assert [p["name"] for p in model["known"]] == ["fitness", "epsilon"]
    assert all(p["sd"] > 0 for p in model["known"])
    lines = [example["line"] for example in model["examples"]]
    assert len(lines) == 3
    sets = Reply(server, "POST", "/api/read", {"lines": lines}).json["sets"]
    assert all("genes" in one for one in sets)


def test_predictions_are_those_of_the_predictor(server: Server, predictor: Predictor) -> None:
    sets = [["G001", "abc2"], ["G003"], ["G003", "G023:absent", "G007"]]
    frame = predictor.predict(sets, as_="fitness", interval=0.8)
    answer = Reply(server, "POST", "/api/predict", {"sets": sets, "interval": 0.8, "fitness": True}).json
    assert len(answer["mutants"]) == 3
    for mutant, (_, row) in zip(answer["mutants"], frame.iterrows(), strict=True):
        assert ",".join(gene["name"] for gene in mutant["genes"]) == row["genes"]
        assert ",".join(gene["kind"] for gene in mutant["genes"]) == row["kinds"]
        (said,) = mutant["predictions"]
        for key, name in (
            ("value", "epsilon"),
            ("low", "epsilon_low"),
            ("high", "epsilon_high"),
            ("measured", "epsilon_measured"),
        ):
            assert said[key] == (None if pd.isna(row[name]) else pytest.approx(row[name]))
        assert mutant["fitness"] == (
            None if pd.isna(row["fitness_expected"]) else pytest.approx(row["fitness_expected"])
        )
        assert mutant["genes_seen"] == row["genes_seen"]
        assert mutant["order_seen"] == row["order_seen"]
        assert mutant["note"] == row["note"]
    assert [gene["essential"] for gene in answer["mutants"][2]["genes"]] == [False, False, True]
    assert answer["mutants"][2]["genes"][2]["usual"] == "reduced"


def test_tables_are_those_of_the_predictor(server: Server, predictor: Predictor) -> None:
    request = {"sets": [["G001", "G002"], ["G003"]], "interval": 0.9}
    frame = predictor.predict(request["sets"], interval=0.9)  # type: ignore[arg-type]
    csv = Reply(server, "POST", "/api/table.csv", request)
    assert csv.headers["Content-Type"] == "text/csv; charset=utf-8"
    read = pd.read_csv(io.BytesIO(csv.body), keep_default_na=False, na_values=[""])
    pd.testing.assert_frame_equal(read.fillna(""), frame.fillna(""), check_dtype=False)
    assert Reply(server, "POST", "/api/table.json", request).json[0]["genes"] == "G001,G002"


def test_nearest_and_neighbourhood_speak_of_the_same_mutant(server: Server) -> None:
    request = {"sets": [["G001", "G002"]]}
    near = Reply(server, "POST", "/api/nearest", request).json
    assert near["reads_evidence"] is True
    assert near["mutants"][0]["how"] == "the same genes"
    assert [gene["label"] for gene in near["mutants"][0]["genes"]] == ["abc1", "abc2"]
    around = Reply(server, "POST", "/api/neighbourhood", request).json
    assert [gene["name"] for gene in around["genes"][: around["perturbed"]]] == ["G001", "G002"]
    assert {edge["relation"] for edge in around["edges"]} == {"physical", "regulatory"}


def test_completion_finds_every_kind_of_name(server: Server) -> None:
    genes = Reply(server, "GET", "/api/complete?text=ABC23").json["genes"]
    assert genes == [
        {
            "name": "G023",
            "label": "abc23",
            "description": "",
            "essential": True,
            "kind": "reduced",
            "matched": "abc23",
        }
    ]
    first = Reply(server, "GET", "/api/complete?text=g00").json["genes"][0]
    assert (first["matched"], first["description"]) == ("G000", "makes the protein of G000")
    assert Reply(server, "GET", "/api/complete").json == {"genes": []}
    assert Reply(server, "GET", "/api/complete?text=%3Cscript%3E%FF").json == {"genes": []}


def test_written_sets_are_read_line_by_line(server: Server) -> None:
    lines = ["abc1; G002:reduced", "", "G001 nope", "G001,abc1", HOSTILE, "G003:gone"]
    read = Reply(server, "POST", "/api/read", {"lines": lines}).json["sets"]
    assert [(gene["name"], gene["kind"]) for gene in read[0]["genes"]] == [
        ("G001", "absent"),
        ("G002", "reduced"),
    ]
    reasons = [one["error"] for one in read[1:]]
    assert "'nope' is not in organism 'tiny'" in reasons[0]
    assert "names G001 more than once" in reasons[1]
    assert "<img" in reasons[2]  # as text, which the page sets as text
    assert "'gone' is not a kind" in reasons[3]
    assert not any(reason.startswith("row") for reason in reasons)


@pytest.mark.parametrize(
    ("request_", "needles"),
    [
        ({"sets": [["G001"], ["G00x"]]}, ["row 2", "'G00x' is not in organism 'tiny'"]),
        ({"sets": [["G001", "abc1"]]}, ["more than once"]),
        ({"sets": [[HOSTILE]]}, ["row 1"]),
        ({"sets": [["G001:gone"]]}, ["'gone' is not a kind"]),
        ({"sets": ["G001"]}, ["row 1 is no list of genes"]),
        ({"sets": [[1]]}, ["row 1 is no list of genes"]),
        ({"sets": {"a": 1}}, ["nothing to predict"]),
        ({}, ["nothing to predict"]),
        ({"sets": [["G001"]] * (MUTANTS + 1)}, [f"{MUTANTS + 1}", "wildtype predict"]),
        ({"sets": [["G001"] * (GENES + 1)]}, [f"{GENES + 1}", f"up to {GENES}"]),
        ({"sets": [["G" * 5000]]}, ["5,000 letters"]),
        ({"sets": [["G001"]], "condition": "heat"}, ["no condition 'heat'"]),
        ({"sets": [["G001"]], "condition": 3}, ["condition=3"]),
        ({"sets": [["G001"]], "interval": 1.5}, ["interval=1.5"]),
        ({"sets": [["G001"]], "interval": float("nan")}, ["interval=nan"]),
        ({"sets": [["G001"]], "interval": True}, ["interval=True"]),
        ({"sets": [["G001"]], "interval": [0.9]}, ["interval=[0.9]"]),
    ],
)
def test_bad_requests_are_one_sentence(server: Server, request_: dict[str, Any], needles: list[str]) -> None:
    Reply(server, "POST", "/api/predict", request_).assert_sentence(400, *needles)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[1]", 400),
        (b"[" * 100_000, 400),
        (b'{"sets": ' + b"1" * 6000 + b"}", 400),
        (b" " * (LONGEST_BODY + 1), 413),
    ],
)
def test_bodies_that_are_no_request(server: Server, body: bytes, status: int) -> None:
    Reply(server, "POST", "/api/predict", body).assert_sentence(status)


def test_only_known_paths_and_methods_are_answered(server: Server) -> None:
    for path in (
        "/none",
        "/../../etc/passwd",
        "/%2e%2e/pyproject.toml",
        "//etc/passwd",
        "/page.html",
        "/api/",
        "/api/model/",
        f"/{HOSTILE[:20].replace(' ', '')}",
    ):
        Reply(server, "GET", path).assert_sentence(404, "there is nothing at")
        Reply(server, "POST", path, {}).assert_sentence(404, "there is nothing at")
    Reply(server, "GET", "/api/predict").assert_sentence(405, "POST")
    Reply(server, "POST", "/", {}).assert_sentence(405, "GET")
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "NONSENSE"):
        refused = Reply(server, method, "/api/predict")
        refused.assert_sentence(405, "GET")
        assert refused.headers["Allow"] == "GET, POST"
        assert "Access-Control-Allow-Origin" not in refused.headers
    assert Reply(server, "HEAD", "/").status == 405
    Reply(server, "GET", f"/{'a' * 3000}").assert_sentence(414, "3,001 letters")
    Reply(server, "GET", f"/{'a' * 70_000}").assert_sentence(414)
    Reply(server, "GET", f"/api/complete?{'&'.join('a=1' for _ in range(50))}").assert_sentence(400)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "", "[::1", "a b"]
)
def test_names_that_were_made_to_lead_here_get_no_answer(server: Server, host: str) -> None:
    for path in ("/", "/api/model"):
        Reply(server, "GET", path, Host=host).assert_sentence(403, "is not this machine", server.url)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9000", "127.0.0.1:1", "[::1]:8765", "192.168.0.7"])
def test_this_machine_may_be_called_by_its_addresses(server: Server, host: str) -> None:
    assert Reply(server, "GET", "/api/model", Host=host).status == 200


def test_pages_of_other_sites_get_no_answer(server: Server) -> None:
    request, here = {"sets": [["G001", "G002"]]}, f"127.0.0.1:{server.server_port}"
    for origin in ("http://evil.example", "null", f"https://{here}", "http://127.0.0.1:1"):
        Reply(server, "POST", "/api/predict", request, Origin=origin).assert_sentence(403, "another site")
    assert Reply(server, "POST", "/api/predict", request, Origin=f"http://{here}").status == 200
    for kind in ("text/plain", "application/x-www-form-urlencoded"):  # what a form of another site may send
        Reply(server, "POST", "/api/predict", request, Content_Type=kind).assert_sentence(415)


def raw(server: Server, text: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as line:
        line.sendall(text)
        line.shutdown(socket.SHUT_WR)
        said = b""
        while piece := line.recv(65536):
            said += piece
    return said


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"403"),  # no host
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", b"403"),
        (b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"403"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 200 + b"\r\n", b"431"),
        (b"POST /api/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\r\n", b"411"),
        (
            b"POST /api/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"411",
        ),
        (
            b"POST /api/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: -5\r\n\r\n",
            b"411",
        ),
        (
            b"POST /api/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 99999999999999999999\r\n\r\n",
            b"413",
        ),
        (
            b"POST /api/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 50\r\n\r\n{",
            b"400",
        ),
    ],
)
def test_what_is_no_http_is_refused(server: Server, text: bytes, status: bytes) -> None:
    said = raw(server, text)
    head, _, body = said.partition(b"\r\n\r\n")
    assert head.split(b" ", 2)[1] == status, said
    assert b"X-Content-Type-Options: nosniff" in head
    assert set(json.loads(body)) == {"error"}


def test_a_defect_is_told_in_the_terminal_and_not_to_the_page(
    predictor: Predictor, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    answers = Answers(predictor, "tiny")
    monkeypatch.setattr(answers, "model", lambda: 1 / 0)
    with serving(answers) as server:
        Reply(server, "GET", "/api/model").assert_sentence(500, "terminal")
        assert Reply(server, "GET", "/").status == 200
    said = capfd.readouterr().err
    assert "wildtype: a request failed: ZeroDivisionError" in said
    assert "Traceback" not in said


def test_requests_beside_each_other_are_answered_one_by_one(
    predictor: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = Answers(predictor, "tiny")
    inside, most, plain = [0], [0], predictor.predict_table

    def watched(*args: Any, **kwargs: Any) -> Any:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        try:
            return plain(*args, **kwargs)
        finally:
            inside[0] -= 1

    monkeypatch.setattr(predictor, "predict_table", watched)
    with serving(answers) as server:
        found: list[Any] = [None] * 6

        def ask(i: int) -> None:
            found[i] = Reply(server, "POST", "/api/predict", {"sets": [["G001", f"G{i + 2:03d}"]]}).json

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(found))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert most == [1]
    names = [answer["mutants"][0]["genes"][1]["name"] for answer in found]
    assert names == [f"G{i + 2:03d}" for i in range(len(found))]


def test_places_that_cannot_be_served_at(server: Server) -> None:
    answers = server.answers
    with pytest.raises(ConfigError, match=f"port {server.server_port} of 127.0.0.1 is taken"):
        Server(answers, "127.0.0.1", server.server_port)
    with pytest.raises(ConfigError, match="--port 70000 is no port"):
        Server(answers, "127.0.0.1", 70_000)
    with pytest.raises(ConfigError, match=r"'192\.0\.2\.1' is no address of this machine"):
        Server(answers, "192.0.2.1", 0)


def test_more_connections_than_the_limit_are_refused_in_one_sentence(
    predictor: Predictor, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serving_module, "MOST_CONNECTIONS", 2)
    with serving(Answers(predictor, "tiny")) as server:
        assert server.request_queue_size >= 100
        at = ("127.0.0.1", server.server_port)
        held = [socket.create_connection(at, timeout=30) for _ in range(2)]
        for _ in range(2):  # accepted in order: the first two have their threads
            with socket.create_connection(at, timeout=30) as line:
                assert line.makefile("rb").readline() == b"HTTP/1.1 503 Service Unavailable\r\n"
        for line in held:
            line.close()
        # The threads of the closed ones end by themselves; how soon is up to the system.
        assert any(status_or_none(server) == 200 for _ in range(10_000))
    said = capfd.readouterr().err.splitlines()
    assert (
        said.count("wildtype: 2 connections are open, and further ones are refused until some are closed")
        == 1
    )


def status_or_none(server: Server) -> int | None:
    try:
        return Reply(server, "GET", "/").status
    except (ConnectionError, http.client.HTTPException):
        return None


@pytest.mark.parametrize("sent", ["GET / HT", "POST /api/read HTTP/1.1\r\nContent-Length: 9\r\n"])
def test_a_request_that_drips_is_cut_off_in_a_sentence(
    sent: str, server: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0])
    monkeypatch.setattr(serving_module, "monotonic", lambda: next(clock, 1e6))
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as line:
        line.sendall(sent.encode())
        assert line.recv(1) == b""
    assert capfd.readouterr().err == "wildtype: a request did not arrive within 60 s, and is cut off\n"
