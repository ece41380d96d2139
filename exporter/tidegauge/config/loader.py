"""The table of keys: which there are, how each is read, and what must hold between them."""

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from tidegauge.catalogue import THRESHOLDS
from tidegauge.catalogue.thresholds import BIMODAL_LATE_HIGH, BIMODAL_LATE_LOW, DEFAULTS
from tidegauge.config import readers as r
from tidegauge.config.nodes import At, ConfigError, Reader, entries, given, items, leaves, parse, section
from tidegauge.config.values import Backend, Callers, Config, LimiterLog, LogSource
from tidegauge.sources.target import BasicAuth, Tls

ENV_LISTEN: Final = "TIDEGAUGE_LISTEN"
ENV_STATE_FILE: Final = "TIDEGAUGE_STATE_FILE"
_STATE_FILE: Final = "state_file"
_RANGES: Final = {"ratio": (0.0, 1.0), "requests": (1.0, math.inf)}


def _thresholds(at: At) -> Mapping[str, float]:
    table = {one.key: r.number(*_RANGES.get(one.unit, (0.0, math.inf))) for one in THRESHOLDS}
    values: dict[str, float] = {**DEFAULTS, **given(at, table, _AnyThreshold)}
    low, high = values[BIMODAL_LATE_LOW.key], values[BIMODAL_LATE_HIGH.key]
    if low >= high:
        raise at.error(f"expected {BIMODAL_LATE_LOW.key} below {BIMODAL_LATE_HIGH.key}, found {low:g} and {high:g}")
    return values


_AnyThreshold = attrs.make_class("_AnyThreshold", {one.key: attrs.field(default=one.value) for one in THRESHOLDS})

_LOG: Final[dict[str, Reader]] = {"file": r.path}
_BASIC_AUTH: Final[dict[str, Reader]] = {"username": r.text, "password_file": r.path}
_TLS: Final[dict[str, Reader]] = {
    "ca_file": r.path,
    "cert_file": r.path,
    "key_file": r.path,
    "server_name": r.text,
    "insecure_skip_verify": r.boolean,
}


def _tls(at: At) -> Tls:
    tls = section(Tls, _TLS)(at)
    if (tls.cert_file is None) != (tls.key_file is None):
        raise at.error("expected cert_file and key_file together, found one of them")
    if tls.insecure_skip_verify and tls.ca_file is not None:
        raise at.error("expected ca_file or insecure_skip_verify, found both")
    return tls


_BACKEND: Final[dict[str, Reader]] = {
    "url": r.url,
    "name": r.text,
    "fleet": r.text,
    "poll_interval": r.duration,
    "timeout": r.duration,
    "log": section(LogSource, _LOG),
    "bearer_token_file": r.path,
    "basic_auth": section(BasicAuth, _BASIC_AUTH),
    "tls": _tls,
    "kv_cache_capacity_tokens": r.integer,
    "max_num_seqs": r.integer,
    "max_num_batched_tokens": r.integer,
    "max_model_len": r.integer,
    "p90_prompt_tokens": r.integer,
}
_LIMITER_LOG: Final[dict[str, Reader]] = {"fleet": r.text, "file": r.path, "pattern": r.limiter_pattern}


def _limiter_logs(at: At) -> tuple[LimiterLog, ...]:
    found: dict[str, LimiterLog] = {}
    for place in items(at):
        log = section(LimiterLog, _LIMITER_LOG)(place)
        if log.file in found:
            raise place.error(f"expected a file of its own, found {log.file!r} again")
        found[log.file] = log
    return tuple(found.values())


_CALLERS: Final[dict[str, Reader]] = {
    "token_file": r.path,
    "max_body": r.size,
    "max_fleets": r.integer,
    "max_callers": r.integer,
    "max_rate": r.integer,
    "roster": r.counts,
    "ceilings": r.counts,
    "limiter_logs": _limiter_logs,
}


def _callers(at: At) -> Callers:
    callers = section(Callers, _CALLERS)(at)
    for name, fleets in (
        ("a roster", callers.roster),
        ("ceilings", callers.ceilings),
        ("limiter_logs", {log.fleet for log in callers.limiter_logs}),
    ):
        if len(fleets) > callers.max_fleets:
            raise at.error(f"expected {name} of at most max_fleets ({callers.max_fleets}) fleets, found {len(fleets)}")
    return callers


def _some(at: At) -> list[At]:
    if not (found := items(at)):
        raise at.wrong("at least one backend", "none")
    return found


_TOP: Final[dict[str, Reader]] = {
    "listen": r.listen,
    "window": r.duration,
    "length_window": r.duration,
    "poll_interval": r.duration,
    "timeout": r.duration,
    "max_page_size": r.size,
    _STATE_FILE: r.path,
    "metric_prefix": r.metric_prefix,
    "thresholds": _thresholds,
    "callers": _callers,
    "backends": _some,
}
_INHERITED: Final = ("poll_interval", "timeout", "max_page_size")


@attrs.frozen
class _Bare(Config):
    """A configuration that may be without backends."""

    backends: tuple[Backend, ...] = ()


def load(text: str, path: str, env: Mapping[str, str], *, bare: bool = False) -> Config:
    """The configuration of a YAML text that was read from `path`; raises ConfigError at the first mistake.

    `env` may override what differs between machines rather than fleets: TIDEGAUGE_LISTEN and TIDEGAUGE_STATE_FILE. A
    *bare* one may be without backends.
    """
    root = parse(text, path)
    values = given(root, _TOP, _Bare if bare else Config)
    inherited: dict[str, Any] = {name: values[name] for name in _INHERITED if name in values}
    backends = [(at, _backend(at, inherited)) for at in values.get("backends", ())]
    _check_names(backends)
    config = Config(**values | {"backends": tuple(backend for _, backend in backends)} | dict(_overrides(env)))
    _check_windows(dict(entries(root)).get("window", root), config)
    _check_state_file(root, config, env)
    return config


def _backend(at: At, inherited: Mapping[str, Any]) -> Backend:
    backend = Backend(**{**inherited, **given(at, _BACKEND, Backend)})
    if backend.bearer_token_file is not None and backend.basic_auth is not None:
        raise at.error("expected bearer_token_file or basic_auth, found both")
    if backend.tls is not None and not backend.url.startswith("https:"):
        raise at.error("expected an https URL beside tls, found http")
    return backend


def _check_names(backends: Iterable[tuple[At, Backend]]) -> None:
    lines: dict[str, int] = {}
    for at, backend in backends:
        if backend.name in lines:
            first = lines[backend.name]
            raise at.error(f"expected a name of its own, found {backend.name!r} again (first in line {first})")
        lines[backend.name] = at.node.start_mark.line + 1


def _check_windows(at: At, config: Config) -> None:
    for backend in config.backends:
        if config.window < 2 * backend.poll_interval:
            raise attrs.evolve(at, key="window").error(
                f"expected at least two poll intervals of {backend.name} ({2 * backend.poll_interval:g} s), "
                f"found {config.window:g} s"
            )


def _check_state_file(root: At, config: Config, env: Mapping[str, str]) -> None:
    """The state file is written: a file that is read for something else would be moved out of its way."""
    if config.state_file is None:
        return
    own = os.path.realpath(config.state_file)
    read = [("this configuration", root.file), *((at.key, r.path(at)) for at in leaves(root) if _is_read(at))]
    for name, file in read:
        if os.path.realpath(file) == own:
            complaint = f"expected a file of its own, found that of {name}"
            if env.get(ENV_STATE_FILE):
                raise ConfigError(f"{ENV_STATE_FILE}: {complaint}")
            raise dict(entries(root))[_STATE_FILE].error(complaint)


def _is_read(at: At) -> bool:
    return not at.is_null and re.sub(r"\[\d+\]", "[]", at.key) in _FILES - {_STATE_FILE}


def _overrides(env: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    if address := env.get(ENV_LISTEN):
        listen = r.parse_listen(address)
        if listen is None:
            raise ConfigError(f"{ENV_LISTEN}: expected an address such as 127.0.0.1:10010, found {address[:60]!r}")
        yield "listen", listen
    if state_file := env.get(ENV_STATE_FILE):
        yield _STATE_FILE, state_file


def for_urls(urls: Iterable[str], *, named: bool = False) -> Config:
    """The configuration of bare URLs, everything else at its default; raises ConfigError naming the URL's place.

    Where *named*, each may be NAME=URL.
    """
    backends: dict[str, Backend] = {}
    for number, given_url in enumerate(urls):
        name, url = _split_name(given_url) if named else (None, given_url)
        place = f"backend URL {number + 1}"
        if name == "":
            raise ConfigError(f"{place}: expected a name before '=', found none")
        if name is not None and not r.is_text(name):
            raise ConfigError(
                f"{place}: expected a name of 1 to {r.MAX_NAME} characters that print, found {name[:60]!r}"
            )
        complaint = r.bad_url(url)
        if complaint is None and not r.is_text(url, r.MAX_PATH):
            complaint = f"a URL of at most {r.MAX_PATH} characters that print", repr(url[:60])
        if complaint is not None:
            raise ConfigError(f"{place}: expected {complaint[0]}, found {complaint[1]}")
        backend = Backend(url=r.page_url(url))
        if name is not None:
            backend = attrs.evolve(backend, name=name)
        if backend.name in backends:
            other = "another server" if name is None else "a name of its own"
            raise ConfigError(f"{place}: expected {other}, found {backend.name!r} again")
        backends[backend.name] = backend
    if not backends:
        raise ConfigError("expected at least one backend URL, found none")
    return Config(backends=tuple(backends.values()))


def _split_name(named_url: str) -> tuple[str | None, str]:
    """NAME=URL in two; a URL with a query has no name."""
    name, equals, url = named_url.partition("=")
    return (name, url) if equals and "://" not in name else (None, named_url)


def _tables() -> Iterator[tuple[str, Reader | None]]:
    """Every key and its reader."""
    below = {"": _TOP, "callers.": _CALLERS, "callers.limiter_logs[].": _LIMITER_LOG}
    below |= {"backends[].": _BACKEND, "backends[].log.": _LOG}
    below |= {"backends[].basic_auth.": _BASIC_AUTH, "backends[].tls.": _TLS}
    yield from ((f"thresholds.{one.key}", None) for one in THRESHOLDS)
    for prefix, table in below.items():
        yield from ((prefix + name, reader) for name, reader in table.items())


KEYS: Final = frozenset(key for key, _ in _tables())
"""Every key, as docs/configuration.md lists them: `window`, `callers.roster`, `backends[].tls.ca_file`."""

_FILES: Final = frozenset(key for key, reader in _tables() if reader is r.path)
