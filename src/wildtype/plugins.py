"""Plug-ins: files and installed packages that register further models and baselines by name.

A plug-in is code, so it is loaded only where a user names it: by a path (``--plugin my_model.py``), or, for
an installed package with an entry point, by the name of the model or baseline. A run records the file name
and sha256 of its plug-ins for comparison; a record never loads a file.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.abc import SourceLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from wildtype.errors import CheckpointError, ConfigError, did_you_mean, reason_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
PACKAGE = __name__.partition(".")[0]
SHOWN = 12
"""Digits of a sha256 in a message."""


@dataclass(frozen=True)
class Plugin:
    """The origin of a model or baseline from outside the package.

    Attributes
    ----------
    file : str
        Name of its file, without the folder.
    sha256 : str
        Of the file's content; empty where there is no file, as in a notebook.
    """

    file: str
    sha256: str

    def to_json(self) -> dict[str, str]:
        """Return what a run records."""
        return {"file": self.file, "sha256": self.sha256}


class Registry(Mapping[str, T], Generic[T]):
    """Models or baselines by name: those of the package, then those of plug-ins.

    Entry points are loaded when their name is looked up: neither ``names`` nor iteration holds them.

    Parameters
    ----------
    kind : str
        What messages call one of them.
    group : str
        Group of the entry points that may offer more.
    built_in : mapping of str to str
        By name, the module of the package that registers it when it is imported.
    """

    def __init__(self, kind: str, group: str, built_in: Mapping[str, str] | None = None) -> None:
        self.kind, self.group = kind, group
        self._built_in = dict(built_in or {})
        self._found: dict[str, T] = {}
        self._module: dict[str, str] = {}
        _registries.append(self)

    def register(self, name: str, value: T, module: str) -> None:
        """Add ``value``, defined in ``module``; raises ``ConfigError`` if the name is taken."""
        owner = self._built_in.get(name)
        ours = module.partition(".")[0] == PACKAGE
        # A class that the named file imports from another file belongs to the named file, whose hash is
        # recorded.
        if _loading and not ours:
            module = _loading[-1]
        # A file that is loaded again may replace its own classes; nobody may replace those of the package.
        taken = not ours if owner else name in self._found and self._module[name] != module
        if taken:
            by = f"{PACKAGE} itself" if owner else f"plug-in {self._plugin(name).file!r}"
            raise ConfigError(f"there is a {self.kind} {name!r} already, from {by}: choose another name")
        self._found[name], self._module[name] = value, module

    def find(self, name: str) -> T:
        """Return what has a name; an entry point of that name is loaded.

        Raises
        ------
        ConfigError
            If there is none; the message names those there are.
        """
        if name not in self._found and name in self._built_in:
            importlib.import_module(self._built_in[name])
        elif name not in self._found and name in (offered := _entry_points(self.group)):
            self._load(offered[name])
        if name not in self._found:
            known = [*self, *(n for n in _entry_points(self.group) if n not in self)]
            others = (
                f"known {self.kind}s: {', '.join(known)}; give the file of another one with --plugin FILE"
            )
            raise ConfigError(f"there is no {self.kind} {name!r}; {did_you_mean(name, known, others)}")
        return self._found[name]

    def plugin(self, name: str) -> Plugin | None:
        """Return the plug-in that registered a name; None for what comes with the package."""
        self.find(name)
        return None if self._module[name].partition(".")[0] == PACKAGE else self._plugin(name)

    def _plugin(self, name: str) -> Plugin:
        return _plugin_of(self._module[name])

    def _load(self, offered: EntryPoint) -> None:
        try:
            offered.load()
        except Exception as error:
            raise ConfigError(
                f"the installed {self.kind} {offered.name!r} ({offered.value}) cannot be imported: "
                f"{_reason(error)}"
            ) from error
        if offered.name not in self._found:
            raise ConfigError(
                f"the entry point {offered.name!r} ({offered.value}) registers no {self.kind} of that name"
            )

    def __getitem__(self, name: str) -> T:
        if name not in self:
            raise KeyError(name)
        return self.find(name)

    def __contains__(self, name: object) -> bool:
        return name in self._built_in or name in self._found

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys([*self._built_in, *self._found])

    def __len__(self) -> int:
        return len({*self._built_in, *self._found})


_registries: list[Registry[Any]] = []
_loading: list[str] = []
"""Modules of the files that are being imported now."""
_loaded: dict[str, tuple[Path, Plugin]] = {}
"""By the name of its module, the path of every file that was loaded, and what it is."""


def load_plugins(paths: str | Path | Sequence[str | Path] | None) -> None:
    """Import files that register models or baselines.

    A file that was loaded before is not loaded again unless its content has changed.

    Raises
    ------
    ConfigError
        If a file is missing, cannot be imported, or registers nothing, or a name that is taken.
    """
    for path in [paths] if isinstance(paths, str | Path) else paths or ():
        _load_file(Path(path).absolute())


def plugin_paths() -> list[str]:
    """Return the paths of all files that were loaded, for a process that this one starts."""
    return [str(path) for path, _ in _loaded.values()]


def require_plugins(record: Sequence[Mapping[str, str]], where: str, *registries: Registry[Any]) -> None:
    """Refuse a run of other plug-ins than those that are loaded.

    Parameters
    ----------
    record : sequence of mapping
        What the run recorded: ``file`` and ``sha256`` of each, and the ``kind`` and ``name`` of what it
        registered.
    where : str
        The run, for messages.
    registries
        Hold what may be named.

    Raises
    ------
    CheckpointError
        Naming the file that is missing or has changed.
    """
    for entry in record:
        (registry,) = (one for one in registries if one.kind == entry["kind"])
        try:
            found = registry.plugin(entry["name"])
        except ConfigError as error:
            if entry["name"] in _entry_points(registry.group):
                raise CheckpointError(f"{where}: {error}") from error
            raise CheckpointError(
                f"{where} needs {registry.kind} {entry['name']!r} from plug-in {entry['file']!r}: give that "
                f"file with --plugin (in Python: plugin=...)"
            ) from error
        if found is None or found.sha256 != entry["sha256"]:
            now = "wildtype itself" if found is None else f"{found.file!r} (sha256 {found.sha256[:SHOWN]})"
            then = f"{entry['file']!r} (sha256 {entry['sha256'][:SHOWN]})"
            raise CheckpointError(
                f"{where} was made with {registry.kind} {entry['name']!r} of plug-in {then}, which now comes "
                f"from {now}: give the file that it was made with"
            )


def recorded(*used: tuple[Registry[Any], str]) -> list[dict[str, str]]:
    """Return what a run records of the plug-ins behind what it used, for `require_plugins`."""
    found = [(registry, name, registry.plugin(name)) for registry, name in used]
    return [
        {"kind": registry.kind, "name": name, **plugin.to_json()}
        for registry, name, plugin in found
        if plugin is not None
    ]


def _load_file(path: Path) -> None:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"the plug-in {str(path)!r} cannot be read ({error.strerror})") from error
    stem = re.sub(r"\W", "_", path.stem)
    name = f"wildtype_plugin_{stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    # The hash of the path in the module's name keeps two files of one name in different folders distinct.
    plugin = Plugin(path.name, sha256(content).hexdigest())
    if _loaded.get(name) == (path, plugin):
        return
    spec = spec_from_file_location(name, path, loader=_Exactly(path, content))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    # State to return to: a file that fails half-way must leave no class registered.
    before = (
        [(dict(r._found), dict(r._module)) for r in _registries],
        sys.modules.get(name),
        _loaded.get(name),
    )
    _forget(name)  # what an earlier version of the file registered
    sys.modules[name], _loaded[name] = module, (path, plugin)  # dataclasses look their module up there
    _loading.append(name)
    try:
        spec.loader.exec_module(module)
        if not any(name in registry._module.values() for registry in _registries):
            raise ConfigError(
                "it registers nothing: decorate a class with register_model or register_baseline"
            )
    # A plug-in that calls sys.exit must not end the program without a sentence.
    except (Exception, SystemExit) as error:
        kept, module_before, loaded_before = before
        for registry, (found, owners) in zip(_registries, kept, strict=True):
            registry._found, registry._module = found, owners
        _restore(sys.modules, name, module_before)
        _restore(_loaded, name, loaded_before)
        raise ConfigError(f"the plug-in {str(path)!r} cannot be imported: {_reason(error)}") from error
    finally:
        _loading.pop()


def _forget(module: str) -> None:
    """Remove a file that was loaded, and what it registered."""
    for registry in _registries:
        for old in [key for key, owner in registry._module.items() if owner == module]:
            del registry._found[old], registry._module[old]
    _loaded.pop(module, None)
    sys.modules.pop(module, None)


def _restore(where: dict[str, T], key: str, value: T | None) -> None:
    where.pop(key, None)
    if value is not None:
        where[key] = value


class _Exactly(SourceLoader):
    """Runs the very bytes whose sha256 is recorded: neither a later file nor cached bytecode."""

    def __init__(self, path: Path, content: bytes) -> None:
        self.path, self.content = path, content

    def get_filename(self, fullname: str) -> str:
        return str(self.path)

    def get_data(self, path: str | bytes) -> bytes:
        return self.content


def _plugin_of(module: str) -> Plugin:
    """Return what a module is that registered something: a loaded file, an installed one, or a notebook."""
    if module in _loaded:
        return _loaded[module][1]
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return Plugin(f"{module} (not a file)", "")
    return Plugin(Path(file).name, sha256(Path(file).read_bytes()).hexdigest())


def _reason(error: BaseException) -> str:
    said = reason_of(error)
    return said if isinstance(error, ConfigError) else f"{type(error).__name__}: {said}"


@cache
def _entry_points(group: str) -> dict[str, EntryPoint]:
    # Loaded here: it takes as long as all else that `import wildtype` loads.
    from importlib.metadata import entry_points

    return {found.name: found for found in entry_points(group=group)}
