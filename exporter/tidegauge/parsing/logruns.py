"""One start of a server, as the lines of its log tell it."""

import re
from typing import Final

import attrs

from tidegauge.model import EngineFacts, StartupFacts
from tidegauge.parsing import statements as st
from tidegauge.parsing.kvcache import Engine, Sample
from tidegauge.parsing.logrecords import Record

_ENGINES: Final = 4096


@attrs.define
class Run:
    """What is known of one start; numbered from 1."""

    number: int
    version: str | None = None
    arguments: dict[str, int] | None = None
    limits: dict[str, tuple[int, int]] = attrs.field(factory=dict)
    engines: dict[tuple[str, str], Engine] = attrs.field(factory=dict)
    block_total: int | None = None
    started: bool | None = None
    too_small: bool = False
    cache_at: float | None = None
    cache_first: bool = False

    def announced(self) -> bool:
        """Tell whether any line that announces a start belongs to this run."""
        return (
            self.version is not None or self.arguments is not None or any(e.initialised for e in self.engines.values())
        )

    def under_way(self) -> bool:
        """Tell whether engines have begun, or the start has ended."""
        return bool(self.engines) or self.started is not None

    def engine(self, record: Record) -> Engine:
        key = (record.engine, record.tag if record.engine else "")
        if key not in self.engines and len(self.engines) < _ENGINES:
            self.engines[key] = Engine(*key)
        return self.engines.get(key) or Engine(*key)

    def known(self, record: Record) -> Engine | None:
        return self.engines.get((record.engine, record.tag if record.engine else ""))

    def limit(self, name: str, value: int, trust: int) -> None:
        old = self.limits.get(name)
        # A draft model prints its own length after the model's: the first stands.
        if old is None or trust > old[0] or (trust == old[0] and trust != st.TRUST_USED):
            self.limits[name] = (trust, value)

    def take(self, record: Record, said: st.Statement) -> None:
        """Book one statement of this start."""
        if record.engine:
            self.engine(record).pid = record.pid
        if isinstance(said, st.CacheSize | st.Blocks | st.Concurrency | st.Override):
            self._take_cache(record, said)
        else:
            self._take_state(record, said)

    def _take_cache(self, record: Record, said: st.CacheSize | st.Blocks | st.Concurrency | st.Override) -> None:
        match said:
            case st.CacheSize(tokens):
                self.cache(record, Sample(tokens=tokens))
            case st.Blocks():
                self.cache(record, Sample(blocks=said))
            case st.Concurrency():
                self.engine(record).pair(said)
                self.limit(st.MAX_MODEL_LEN, said.max_model_len, st.TRUST_CACHE)
            case st.Override():
                self.engine(record).note(said)

    def _take_state(self, record: Record, said: st.Statement) -> None:
        match said:
            case st.Banner(version):
                self.version = version
            case st.Arguments(values):
                self._arguments(values)
            case st.EngineStart():
                self._engine_start(record, said)
            case st.Limit(name, value, trust):
                self.limit(name, value, trust)
            case st.BlockTotal(count):
                self.block_total = count
            case st.Ready():
                self.started = self.started is not False
            case st.Failed():
                self._failed(said)

    def cache(self, record: Record, sample: Sample) -> None:
        """Book the cache that an engine or one of its workers printed."""
        if not self.cached():
            self.cache_first = not self.announced()
        engine = self.engine(record)
        engine.add(sample)
        engine.printed_at = record.clock
        self.cache_at = record.clock

    def cached(self) -> bool:
        return any(engine.samples for engine in self.engines.values())

    def _arguments(self, values: dict[str, int]) -> None:
        self.arguments = values
        for name in values.keys() - {st.BLOCK_SIZE}:
            self.limit(name, values[name], st.TRUST_ARGUMENT)

    def _engine_start(self, record: Record, said: st.EngineStart) -> None:
        engine = self.engine(record)
        engine.initialised, engine.initialised_at = True, record.clock
        self.version = said.version or self.version
        if (length := said.values.get("max_seq_len")) is not None:
            self.limit(st.MAX_MODEL_LEN, length, st.TRUST_CONFIG)
        if (size := said.values.get(st.DATA_PARALLEL_SIZE)) is not None:
            self.limit(st.DATA_PARALLEL_SIZE, size, st.TRUST_DEFAULT)  # a rank may see itself as the only one

    def _failed(self, said: st.Failed) -> None:
        if self.started is not None:
            return
        self.started = False
        if said.max_model_len is not None:
            self.too_small = True
            self.limit(st.MAX_MODEL_LEN, said.max_model_len, st.TRUST_CONFIG)

    def facts(self) -> StartupFacts:
        value = {name: value for name, (_, value) in self.limits.items()}
        return StartupFacts(
            run=self.number,
            version=self.version,
            engines=self._engine_facts(),
            max_model_len=value.get(st.MAX_MODEL_LEN),
            max_num_seqs=value.get(st.MAX_NUM_SEQS),
            max_num_batched_tokens=value.get(st.MAX_NUM_BATCHED_TOKENS),
            data_parallel_size=value.get(st.DATA_PARALLEL_SIZE),
            started=self.started,
        )

    def _engine_facts(self) -> tuple[EngineFacts, ...]:
        engines = list(self.engines.values())
        if any(engine.name for engine in engines):  # a nameless one without a cache is only the process that logged
            engines = [engine for engine in engines if engine.name or engine.samples]
        names = [engine.name for engine in engines]
        block_size = (self.arguments or {}).get(st.BLOCK_SIZE)
        total = self.block_total if len(engines) == 1 else None
        named = [
            engine.facts(
                engine.name if names.count(engine.name) == 1 else f"{engine.name} {engine.tag}".strip(),
                block_size,
                total,
            )
            for engine in engines
        ]
        if self.too_small:  # refused, never created
            named = [attrs.evolve(facts, kv_cache_tokens=None, rule=None) for facts in named]
        return tuple(sorted(named, key=lambda facts: _natural(facts.name)))


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
