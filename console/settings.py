"""What an operator has set: one TOML file, the environment over it, flags over both. Read strictly.

The file lies where the platform keeps such files (`gonogo config path` says where), or where GONOGO_CONFIG names it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from themes.palettes import PALETTES, STATES

FILE_VARIABLE = "GONOGO_CONFIG"
RUNS_VARIABLE = "GONOGO_RUNS"
THEME_VARIABLE = "GONOGO_THEME"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
DESKTOP_WORDS = ("auto", "osc9", "osc777", "off")

TEMPLATE = """\
# Settings of gonogo. Every line is optional; what stands behind a # is the default.

# Folders that hold run folders, for `gonogo fleet`. GONOGO_RUNS goes over it, named folders over both.
# runs = ["gonogo-runs"]

# Describes the clusters, for `gonogo run`; --clusters goes over it. Default: the one that is found.
# clusters = "~/.config/modelopt/clusters.yaml"

# One of the themes; GONOGO_THEME goes over it.
# theme = "gonogo-dark"

# Whether anything moves on the screen; clocks always go on.
# animations = true

[notify]
# The terminal's bell when something begins to wait for you.
# bell = true
# A notification on the desktop by a sequence of the terminal: auto, osc9, osc777 or off.
# desktop = "auto"
# How many wait, in the terminal's title (and badge, where it has one).
# title = true
# Where a notice is posted when a job waits for approval, a gate failed, or there is a verdict: https, or this machine.
# webhook = "https://hooks.example.org/gonogo"
# A command of this machine that gets the same JSON on its standard input.
# command = ["/usr/local/bin/gonogo-notice"]

[signing]
# Your SSH public key, of which your agent holds the other half: every decision of yours is signed with it.
# key = "~/.ssh/id_ed25519.pub"
# Whose signatures count, in the format of ssh-keygen(1); the names in it are the operators' account names.
# allowed_signers = "~/.config/gonogo/allowed_signers"
# Keys that count no longer: a list of them, or a revocation list made by ssh-keygen -k.
# revoked = "~/.config/gonogo/revoked_keys"
# Whether releases that you start ask for signed decisions, whatever their release.yaml says.
# required = false

# Clusters on which a mistake costs more: named in a colour of their own on every screen.
# [production.alpha]
# colour = "failed"
# label = "PRODUCTION"
"""


class SettingsError(Exception):
    """Settings that cannot be used; one line for each problem: file, key, what was expected."""


class Production(NamedTuple):
    """How a cluster is marked.

    Attributes:
        label: A word or two.
        colour: Name of a state whose colour it has.
    """

    label: str = "PRODUCTION"
    colour: str = "failed"


class Signing(NamedTuple):
    """How decisions are signed, and whose signatures count.

    Attributes:
        key: The operator's public key, None for no signatures.
        allowed_signers: File of allowed signers, None where nobody can say whose a signature is.
        revoked: File of keys that count no longer, None for none.
        required: Whether releases that are started here ask for signed decisions.
    """

    key: Path | None = None
    allowed_signers: Path | None = None
    revoked: Path | None = None
    required: bool = False


class Webhook:
    """The address of a webhook. It may hold a token, so as text it is only its beginning.

    Args:
        url: The whole address.

    Attributes:
        whole: The whole address, for whoever connects.

    Raises:
        ValueError: When it is none that can be used; the text says what was expected, and nothing of the address.
    """

    def __init__(self, url: str) -> None:
        self.whole = url
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise ValueError("an address (https://host/path)") from None
        if not url.isascii() or not url.isprintable() or " " in url or "#" in url or "@" in parts.netloc:
            raise ValueError("an address in plain ASCII, without blanks, # and an account")
        if parts.scheme not in ("https", "http") or not parts.hostname or port == 0:
            raise ValueError("an address (https://host/path)")
        if parts.scheme == "http" and parts.hostname not in LOOPBACK:
            raise ValueError(f"https; plain http only to this machine ({', '.join(LOOPBACK)})")
        self._shown = f"{parts.scheme}://{parts.netloc}/..."

    def __str__(self) -> str:
        return self._shown

    def __repr__(self) -> str:
        return f"Webhook({self._shown!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Webhook) and other.whole == self.whole

    def __hash__(self) -> int:
        return hash(self.whole)


class Notify(NamedTuple):
    """Who is told beside the terminal.

    Attributes:
        webhook: Where notices are posted, None for nowhere.
        command: What gets them on its standard input, empty for nothing.
    """

    webhook: Webhook | None = None
    command: tuple[str, ...] = ()


class Settings(NamedTuple):
    """What is set. The defaults are those of a file that is not there.

    Attributes:
        runs: Folders that hold run folders; empty where none is named.
        clusters: The file that describes the clusters; None where none is named.
        theme: Name of a theme.
        animations: Whether anything moves.
        bell: Whether the bell rings for the operator.
        desktop: One of DESKTOP_WORDS.
        title: Whether the terminal's title is set.
        production: Marked clusters by name.
        signing: How decisions are signed.
        notify: Who is told beside the terminal.
    """

    runs: tuple[Path, ...] = ()
    clusters: Path | None = None
    theme: str = "gonogo-dark"
    animations: bool = True
    bell: bool = True
    desktop: str = "auto"
    title: bool = True
    production: Mapping[str, Production] = MappingProxyType({})
    signing: Signing = Signing()
    notify: Notify = Notify()


def path_of(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the file lies, whether it is there or not."""
    if named := environ.get(FILE_VARIABLE):
        return Path(named).expanduser()
    from platformdirs import user_config_path

    return user_config_path("gonogo") / "config.toml"


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings: of the file, the environment over them.

    Raises:
        SettingsError: When one of them cannot be used.
    """
    path = path_of(environ)
    try:
        text = path.read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        settings = Settings()
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: not UTF-8 at byte {error.start}") from None
    else:
        settings = parse(text, path)
    return _over(settings, environ)


def parse(text: str, path: Path) -> Settings:
    """The settings in a file.

    Args:
        text: The file's text.
        path: Its name, for errors.

    Raises:
        SettingsError: With a line for each problem.
    """
    import tomllib

    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: no TOML: {error}") from None
    reader = _Reader(path)
    settings = reader.settings(data)
    if reader.problems:
        raise SettingsError("\n".join(reader.problems))
    return settings


def _over(settings: Settings, environ: Mapping[str, str]) -> Settings:
    theme = environ.get(THEME_VARIABLE)
    if theme and theme not in PALETTES:
        raise SettingsError(f"{THEME_VARIABLE}: expected one of {', '.join(PALETTES)}, found {theme!r}")
    parts = [Path(part).expanduser() for part in environ.get(RUNS_VARIABLE, "").split(os.pathsep) if part]
    return settings._replace(theme=theme or settings.theme, runs=tuple(parts) or settings.runs)


class _Reader:
    """Takes values out of a file and notes what is wrong with it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.problems: list[str] = []

    def settings(self, data: Mapping[str, Any]) -> Settings:
        """All of them."""
        self._known(data, "", ("runs", "clusters", "theme", "animations", "notify", "production", "signing"))
        notify = self._value(data, "notify", {}, "a table", _is_table)
        self._known(notify, "notify.", ("bell", "desktop", "title", "webhook", "command"))
        runs = self._value(data, "runs", [], "a path, or a list of paths", _is_paths)
        clusters = self._value(data, "clusters", "", "a path", _is_text)
        words = f"one of {', '.join(DESKTOP_WORDS)}"
        return Settings(
            runs=tuple(Path(item).expanduser() for item in ([runs] if isinstance(runs, str) else runs)),
            clusters=Path(clusters).expanduser() if clusters else None,
            theme=self._value(
                data, "theme", "gonogo-dark", f"one of {', '.join(PALETTES)}", lambda item: item in tuple(PALETTES)
            ),
            animations=self._value(data, "animations", True, "true or false", _is_switch),
            bell=self._value(notify, "bell", True, "true or false", _is_switch, "notify."),
            desktop=self._value(notify, "desktop", "auto", words, lambda item: item in DESKTOP_WORDS, "notify."),
            title=self._value(notify, "title", True, "true or false", _is_switch, "notify."),
            production=self._production(data),
            signing=self._signing(data),
            notify=self._hooks(notify),
        )

    def _hooks(self, table: Mapping[str, Any]) -> Notify:
        command = self._value(
            table, "command", [], "a list of texts: a program and its arguments", _is_command, "notify."
        )
        url = table.get("webhook", "")
        if url == "":
            return Notify(None, tuple(command))
        try:
            if not isinstance(url, str):
                raise ValueError("a text")
            return Notify(Webhook(url), tuple(command))
        except ValueError as error:
            # Not what was found: it may be a secret.
            self.problems.append(f"{self._path}: notify.webhook: expected {error}")
            return Notify()

    def _signing(self, data: Mapping[str, Any]) -> Signing:
        table = self._value(data, "signing", {}, "a table", _is_table)
        self._known(table, "signing.", Signing._fields)
        files = {}
        for key in ("key", "allowed_signers", "revoked"):
            path = self._value(table, key, "", "a path", _is_text, "signing.")
            files[key] = Path(path).expanduser() if path else None
        return Signing(**files, required=self._value(table, "required", False, "true or false", _is_switch, "signing."))

    def _production(self, data: Mapping[str, Any]) -> Mapping[str, Production]:
        found = dict[str, Production]()
        for name, table in self._value(data, "production", {}, "a table", _is_table).items():
            place = f"production.{name}."
            if not _is_table(table):
                self.problems.append(f"{self._path}: production.{name}: expected a table, found {table!r}")
                continue
            self._known(table, place, ("colour", "label"))
            colour = self._value(
                table, "colour", "failed", f"one of {', '.join(STATES)}", lambda item: item in tuple(STATES), place
            )
            found[name] = Production(self._value(table, "label", "PRODUCTION", "a text", _is_text, place), colour)
        return found

    def _known(self, table: Mapping[str, Any], place: str, known: tuple[str, ...]) -> None:
        self.problems += [
            f"{self._path}: {place}{key}: unknown key; expected one of {', '.join(known)}"
            for key in table
            if key not in known
        ]

    def _value(
        self,
        table: Mapping[str, Any],
        key: str,
        default: Any,
        expected: str,
        usable: Callable[[Any], bool],
        place: str = "",
    ) -> Any:
        value = table.get(key, default)
        if usable(value):
            return value
        self.problems.append(f"{self._path}: {place}{key}: expected {expected}, found {value!r}")
        return default


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_switch(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_command(value: Any) -> bool:
    return isinstance(value, list) and all(_is_text(item) and "\0" not in item for item in value) and value != [""]


def _is_paths(value: Any) -> bool:
    return bool(value == [] or _is_text(value) or (isinstance(value, list) and all(map(_is_text, value))))
