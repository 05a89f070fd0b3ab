"""A headless Chromium, driven over a pipe in its own protocol (Chrome DevTools): type, click, read, look."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

PATIENCE = 60  # seconds that nothing comes before a test fails
TO_3_AND_4 = """import os, sys
r, w = map(int, sys.argv[1:3])
os.dup2(r, 3); os.dup2(w, 4)
os.execvp(sys.argv[3], sys.argv[3:])"""
UNTIL = """new Promise((resolve) => {
  const look = () => { let found; try { found = (%s); } catch { found = null; }
    if (found) resolve(found === true || JSON.parse(JSON.stringify(found))); else setTimeout(look, 15); };
  look(); })"""
KEYS = {"Enter": (13, "\r"), "ArrowDown": (40, ""), "ArrowUp": (38, ""), "Escape": (27, ""), "Tab": (9, ""),
        "Backspace": (8, ""), ",": (188, ","), " ": (32, " ")}  # fmt: skip


class Browser:
    """One page of one browser; what its console complains of is kept in ``problems``."""

    def __init__(self, chromium: str, folder: Path) -> None:
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]
        words = [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={folder}", "--remote-debugging-pipe",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", TO_3_AND_4, *map(str, theirs), *words],
            pass_fds=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (theirs_in, theirs_out, *theirs):
            os.close(fd)
        self._in, self._out, self._rest, self._count = ours_in, ours_out, b"", 0
        self._session = ""
        self.problems: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session = ""
        try:
            self.call("Browser.close")
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._in)
            os.close(self._out)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the browser's answer; events that come before it are looked through for problems."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._count:
            self._note(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return dict(answer["result"])

    def event(self, method: str, **params: Any) -> dict[str, Any]:
        """Wait for an event with these among its parameters, and return them all."""
        while True:
            message = self._read()
            self._note(message)
            found = message.get("params", {})
            if message.get("method") == method and params.items() <= found.items():
                return dict(found)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], PATIENCE)
            assert ready, f"chromium said nothing for {PATIENCE} s"
            piece = os.read(self._in, 1 << 20)
            assert piece, "chromium ended"
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(str(details.get("exception", {}).get("description", details["text"])))
        if event.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.problems.append(str([x.get("value", x.get("description")) for x in params["args"]]))
        if event.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def window(self, width: int, height: int, *, dark: bool = False) -> None:
        """Give the page a size in pixels, and light or dark colours."""
        mobile = width < 600
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=mobile,
        )
        colours = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[colours])

    def open(self, url: str) -> None:
        """Load a page from the start, also where only what stands behind # differs."""
        self.call("Page.navigate", url="about:blank")
        self.until("location.href == 'about:blank'")
        self.call("Page.navigate", url=url)
        self.until("document.readyState == 'complete'")

    def ask(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
            allowUnsafeEvalBlockedByCSP=False,
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, expression: str) -> Any:
        """Return the value of an expression as soon as it is true."""
        return self.ask(UNTIL % expression)

    def type(self, text: str) -> None:
        """Type letters where the cursor is."""
        for letter in text:
            self.call("Input.dispatchKeyEvent", type="char", text=letter)

    def press(self, *keys: str) -> None:
        """Press and release keys, one after the other."""
        for key in keys:
            code, text = KEYS[key]
            down = {"type": "keyDown" if text else "rawKeyDown", "key": key, "windowsVirtualKeyCode": code}
            self.call("Input.dispatchKeyEvent", **(down | {"text": text} if text else down))
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def click(self, selector: str) -> None:
        """Click into the middle of the first element that a selector finds."""
        x, y = self.ask(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); "
            "e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect(); "
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def look(self, path: Path) -> None:
        """Write a picture of the whole page (PNG)."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))
