"""What a configuration says, with its defaults; durations in seconds, sizes in bytes."""

from collections.abc import Mapping
from types import MappingProxyType

import attrs
from yarl import URL

from tidegauge.catalogue import places
from tidegauge.catalogue import thresholds as th
from tidegauge.sources.target import MIB, BasicAuth, Target, Tls

NOTHING: Mapping[str, int] = MappingProxyType({})


@attrs.frozen
class Listen:
    """The address the exporter serves on; port 0 takes a free one."""

    host: str = places.HOST
    port: int = places.PORT


@attrs.frozen
class LogSource:
    """Where a backend's startup log is followed."""

    file: str


@attrs.frozen
class LimiterLog:
    """A limiter's log that is followed: what its pattern finds is news of the fleet's ceiling."""

    fleet: str
    file: str
    pattern: str


@attrs.frozen
class Callers:
    """What callers may send, and what the operator knows of them.

    `max_callers` holds for each fleet, `max_rate` is events per second for each caller; `roster` is the largest
    fan-out a fleet can have and `ceilings` what its limiter lets through, by fleet.
    """

    token_file: str | None = None
    max_body: int = MIB
    max_fleets: int = 50
    max_callers: int = 100
    max_rate: int = 1000
    roster: Mapping[str, int] = NOTHING
    ceilings: Mapping[str, int] = NOTHING
    limiter_logs: tuple[LimiterLog, ...] = ()


def host_and_port(url: str) -> str:
    """`host:port` of a URL as Prometheus writes `instance`, the scheme's port where none is given."""
    parsed = URL(url)
    host = parsed.host or ""
    return f"[{host}]:{parsed.port}" if ":" in host else f"{host}:{parsed.port}"


@attrs.frozen
class Backend:
    """One vLLM endpoint; figures that the operator pins are None where they are left to the sources."""

    url: str
    name: str = attrs.field(default=attrs.Factory(lambda self: host_and_port(self.url), takes_self=True))
    fleet: str | None = None
    poll_interval: float = 1.0
    timeout: float = 5.0
    max_page_size: int = 16 * MIB
    log: LogSource | None = None
    bearer_token_file: str | None = None
    basic_auth: BasicAuth | None = None
    tls: Tls | None = None
    kv_cache_capacity_tokens: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    max_model_len: int | None = None
    p90_prompt_tokens: int | None = None

    @property
    def target(self) -> Target:
        """What the poller needs to know of this backend."""
        return Target(
            name=self.name,
            url=self.url,
            timeout=self.timeout,
            max_page_size=self.max_page_size,
            bearer_token_file=self.bearer_token_file,
            basic_auth=self.basic_auth,
            tls=self.tls,
        )


@attrs.frozen
class Config:
    """A whole configuration; `thresholds` has every key of the catalogue's THRESHOLDS.

    `poll_interval`, `timeout` and `max_page_size` are the defaults that each Backend already carries resolved.
    """

    backends: tuple[Backend, ...]
    listen: Listen = Listen()
    window: float = 900.0
    length_window: float = 3600.0
    poll_interval: float = 1.0
    timeout: float = 5.0
    max_page_size: int = 16 * MIB
    state_file: str | None = None
    metric_prefix: str | None = None
    thresholds: Mapping[str, float] = th.DEFAULTS
    callers: Callers = Callers()
