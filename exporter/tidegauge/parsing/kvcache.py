"""The KV capacity of one engine, from the lines that its start printed.

Several lines for one engine come from its workers (before 0.11.1): the engine uses the smallest. The printed size of a
hybrid model is wrong before 0.21, and then contradicts concurrency x max_model_len, which is right. Block counts need a
block size, which is rarely printed: it follows from the concurrency, else from the arguments, else from the device word
where only one size existed.
"""

from collections.abc import Iterator
from typing import Final

import attrs

from tidegauge.model import EngineFacts
from tidegauge.parsing.statements import Blocks, Concurrency, Override

PRINTED: Final = "printed"
MIN_OF_WORKERS: Final = "min_of_workers"
FROM_CONCURRENCY: Final = "concurrency_x_max_model_len"
FROM_BLOCKS: Final = "blocks_x_block_size"

_BLOCK_SIZES: Final = tuple(2**power for power in range(11))
_LARGEST_PLAIN_BLOCK: Final = 256
_HALF_PLACE: Final = 0.005  # the concurrency is printed with two places
# Devices whose block size was fixed while they printed block counts without a concurrency line (facts of 0.2 to 0.6.2).
_ONLY_BLOCK_SIZE: Final = {"GPU": 16, "HPU": 128, "DEVICE": 32}
_SAMPLES: Final = 1024


@attrs.frozen
class Sample:
    """What one worker (or the engine itself) printed of its cache."""

    tokens: int | None = None
    blocks: Blocks | None = None
    concurrency: Concurrency | None = None
    override: Override | None = None


@attrs.frozen
class Capacity:
    """A sample's capacity in tokens, None where it cannot be told."""

    tokens: int | None
    rule: str | None
    sample: Sample
    block_size: int | None = None


@attrs.define
class Engine:
    """The cache lines of one engine during one start; at most a fixed number is kept."""

    name: str
    tag: str = ""
    pid: str = ""
    initialised_at: float | None = None
    initialised: bool = False
    printed_at: float | None = None
    samples: list[Sample] = attrs.field(factory=list)
    _override: Override | None = None

    def add(self, sample: Sample) -> None:
        if len(self.samples) < _SAMPLES:
            self.samples.append(attrs.evolve(sample, override=self._override))
        self._override = None

    def note(self, override: Override) -> None:
        """Remember an override for the size printed next; from 0 blocks it is a step of memory profiling."""
        if override.found > 0:
            self._override = override

    def pair(self, concurrency: Concurrency) -> None:
        """Give a concurrency line to the last size still without one."""
        for index in range(len(self.samples) - 1, -1, -1):
            if self.samples[index].concurrency is None:
                self.samples[index] = attrs.evolve(self.samples[index], concurrency=concurrency)
                return
        if not self.samples:
            self.add(Sample(concurrency=concurrency))

    def take_unpaired(self) -> Sample | None:
        """Give away the last size if it has no concurrency line yet."""
        if self.samples and self.samples[-1].concurrency is None:
            return self.samples.pop()
        return None

    def length(self) -> int | None:
        """max_model_len as the concurrency lines say it."""
        return next((each.concurrency.max_model_len for each in self.samples if each.concurrency), None)

    def facts(self, name: str, asked_block_size: int | None, block_total: int | None) -> EngineFacts:
        """Sum up; `block_total` is the number of blocks when this is the only engine."""
        best = _smallest([capacity(sample, asked_block_size) for sample in self.samples])
        if best is None:
            return EngineFacts(name, num_gpu_blocks=block_total)
        blocks, concurrency = best.sample.blocks, best.sample.concurrency
        return EngineFacts(
            name,
            kv_cache_tokens=best.tokens,
            rule=best.rule,
            num_gpu_blocks=blocks.count if blocks else block_total,
            block_size=best.block_size,
            max_concurrency=concurrency.requests if concurrency else None,
        )


def capacity(sample: Sample, asked_block_size: int | None) -> Capacity:
    """Return what one sample says of the capacity."""
    product = _product(sample.concurrency)
    if sample.blocks is not None:
        size = _block_size(sample.blocks, sample.concurrency, asked_block_size)
        if size is not None:
            return Capacity(sample.blocks.count * size, FROM_BLOCKS, sample, size)
    elif sample.tokens is not None:
        if sample.override and (used := _overridden(sample.tokens, sample.override)):
            return Capacity(used, FROM_BLOCKS, sample)
        if sample.concurrency is None or not _contradicts(sample.tokens, sample.concurrency):
            return Capacity(sample.tokens, PRINTED, sample)
    return Capacity(product, FROM_CONCURRENCY if product else None, sample)


def _product(concurrency: Concurrency | None) -> int | None:
    return round(concurrency.requests * concurrency.max_model_len) if concurrency else None


def _contradicts(tokens: int, concurrency: Concurrency) -> bool:
    """Tell a hybrid model: size and concurrency differ by more than rounding.

    A plain model's size may exceed the product by the unused rest of each request's last block.
    """
    rounding = _HALF_PLACE * concurrency.max_model_len + 1
    last_block = tokens * _LARGEST_PLAIN_BLOCK / (concurrency.max_model_len + _LARGEST_PLAIN_BLOCK)
    exact = concurrency.requests * concurrency.max_model_len
    return not exact - rounding <= tokens <= exact + rounding + last_block


def _overridden(tokens: int, override: Override) -> int | None:
    """Return the size in force where the printed one is that of the blocks found (V1 before about 0.9.2)."""
    size, rest = divmod(tokens, override.found)
    if rest == 0 and size in _BLOCK_SIZES and override.found != override.used:
        return override.used * size
    return None


def _block_size(blocks: Blocks, concurrency: Concurrency | None, asked: int | None) -> int | None:
    if concurrency is None:
        return asked or (_ONLY_BLOCK_SIZE.get(blocks.device) if blocks.swap or blocks.device == "HPU" else None)
    exact = concurrency.requests * concurrency.max_model_len
    rounding = _HALF_PLACE * concurrency.max_model_len + 1e-6
    candidates = [size for size in _BLOCK_SIZES if abs(blocks.count * size - exact) <= rounding]
    if asked in candidates:
        return asked
    return candidates[0] if len(candidates) == 1 else None


def _smallest(capacities: list[Capacity]) -> Capacity | None:
    """Return what the engine uses: the smallest of its workers' capacities."""
    if not capacities:
        return None
    known = list(_comparable(capacities))
    if not known:
        return Capacity(None, None, capacities[0].sample)
    best = min(known, key=lambda each: each.tokens or 0)
    if len(known) > 1 and best.rule == PRINTED:
        return attrs.evolve(best, rule=MIN_OF_WORKERS)
    return best


def _comparable(capacities: list[Capacity]) -> Iterator[Capacity]:
    """Leave out sizes of a hybrid model whose concurrency line is missing: they are known to be wrong."""
    hybrid = any(each.rule == FROM_CONCURRENCY and each.sample.tokens is not None for each in capacities)
    for each in capacities:
        if each.tokens is not None and not (hybrid and each.rule == PRINTED and each.sample.concurrency is None):
            yield each
