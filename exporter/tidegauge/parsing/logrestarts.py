"""Where one start of a server ends in its log and the next begins.

A start is announced by its banner, its argument list and its engines' configuration; a log that lost those is divided
by its cache lines. An equal process id proves nothing (a container begins again with the same ones), a different one
does.
"""

from typing import Final

from tidegauge.parsing import statements as st
from tidegauge.parsing.kvcache import Engine, Sample
from tidegauge.parsing.logrecords import Record
from tidegauge.parsing.logruns import Run

_DAY: Final = 86_400.0
_YEAR: Final = 366 * _DAY
_ONE_PRINTING: Final = 60.0  # workers of one engine print their sizes within seconds
_SAME_START: Final = 5.0  # lines of different processes may come out of order by this much
_TWICE: Final = 2.0  # two handlers write the same record within this time


def _elapsed(earlier: float | None, later: float | None) -> float | None:
    """Return the seconds between two moments of a year without a number; the shorter way round the year."""
    if earlier is None or later is None:
        return None
    ahead = (later - earlier) % _YEAR
    return ahead if ahead <= _YEAR / 2 else ahead - _YEAR


def begins_anew(run: Run, record: Record, said: st.Statement) -> bool:
    """Tell whether a statement belongs to a start after `run`."""
    if isinstance(said, st.CacheSize | st.Blocks | st.Concurrency):
        return _cache_begins_anew(run, record, said)
    if isinstance(said, st.Banner | st.Arguments | st.EngineStart) and _older(run, record):
        return False
    match said:
        case st.Banner(version):
            anew = run.arguments is not None or run.under_way() or run.version not in (None, version)
        case st.Arguments(values):
            anew = run.under_way() or run.arguments not in (None, values)
        case st.EngineStart():
            anew = _engine_begins_anew(run, record)
        case st.Limit(_, _, trust) if trust in (st.TRUST_DEFAULT, st.TRUST_USED, st.TRUST_CONFIG):
            anew = not record.process and not _older(run, record) and _limit_begins_anew(run, record, said)
        case _:
            anew = False
    return anew


def _limit_begins_anew(run: Run, record: Record, said: st.Limit) -> bool:
    """Limits are printed before the engine starts, and a program without a server announces itself by nothing else."""
    if run.started is not None:
        return True
    since = _elapsed(run.cache_at, record.clock)
    if since is not None:
        return since > _SAME_START
    return run.cached() and run.limits.get(said.name, (0, said.value))[1] != said.value


def _older(run: Run, record: Record) -> bool:
    """Tell a text put together backwards: cache lines stand first, and the announcement carries an earlier time."""
    since = _elapsed(record.clock, run.cache_at)
    return run.cache_first and since is not None and 0 < since < _DAY


def _engine_begins_anew(run: Run, record: Record) -> bool:
    engine = run.known(record)
    if run.started:
        return True
    if engine is None or not (engine.initialised or engine.samples):
        return False
    if engine.samples or run.started is False or _other_process(engine, record):
        return True
    since = _elapsed(engine.initialised_at, record.clock)
    return since is not None and abs(since) > _TWICE


def _cache_begins_anew(run: Run, record: Record, said: st.CacheSize | st.Blocks | st.Concurrency) -> bool:
    engine = run.known(record)
    if engine is None or not engine.samples:
        return False
    if isinstance(said, st.Concurrency):
        return engine.length() not in (None, said.max_model_len)
    since = _elapsed(engine.printed_at, record.clock)
    if run.started is not None or _other_process(engine, record) or (since is not None and abs(since) > _ONE_PRINTING):
        return True
    if isinstance(said, st.Blocks) and said.swap:  # V0 prints once, whatever the number of workers
        return engine.samples[-1].blocks != said or (since is not None and abs(since) > _TWICE)
    return False


def _other_process(engine: Engine, record: Record) -> bool:
    return bool(engine.pid and record.pid and engine.pid != record.pid)


def carried_over(run: Run, record: Record, said: st.Statement) -> Sample | None:
    """Take back a size already booked on `run` whose concurrency line shows that it belongs to the next start."""
    engine = run.known(record)
    return engine.take_unpaired() if engine and isinstance(said, st.Concurrency) else None
