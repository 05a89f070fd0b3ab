"""A real browser for the tests that look at pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from tests.browser import Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        reason = "no chromium on the PATH: install it (apt-get install chromium) to try the page"
        if "CI" in os.environ:
            pytest.fail(reason)
        pytest.skip(reason)
    with Browser(chromium, tmp_path_factory.mktemp("browser")) as browser:
        yield browser
