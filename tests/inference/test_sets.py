"""Gene sets as people type them and keep them in files."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

from wildtype.inference.sets import named_genes


def test_genes_come_from_a_pipe_as_from_a_file(tmp_path: Path) -> None:
    """A shell writes ``<(command)`` as the path of a pipe, which is no regular file."""
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    file.write_text("SGS1\nSRS2,PDR5\n", encoding="utf-8")
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_text, args=(file.read_text(encoding="utf-8"),), daemon=True)
    writer.start()
    assert named_genes(str(pipe)) == named_genes(str(file)) == ["SGS1", "SRS2", "PDR5"]
    writer.join()
