"""What a line of a server's startup can say, one value per kind of line."""

from typing import Final

import attrs

MAX_MODEL_LEN: Final = "max_model_len"
MAX_NUM_SEQS: Final = "max_num_seqs"
MAX_NUM_BATCHED_TOKENS: Final = "max_num_batched_tokens"
DATA_PARALLEL_SIZE: Final = "data_parallel_size"
BLOCK_SIZE: Final = "block_size"
ARGUMENTS: Final = frozenset((MAX_MODEL_LEN, MAX_NUM_SEQS, MAX_NUM_BATCHED_TOKENS, DATA_PARALLEL_SIZE, BLOCK_SIZE))


@attrs.frozen
class Banner:
    """A server began to start."""

    version: str


@attrs.frozen
class Arguments:
    """What the user set (before 0.9 the defaults too, as far as they are numbers)."""

    values: dict[str, int]


@attrs.frozen
class EngineStart:
    """An engine began to start; `values` from its configuration."""

    version: str | None
    values: dict[str, int]


@attrs.frozen
class Limit:
    """One limit in force. Of several statements on one limit that of the highest `trust` holds."""

    name: str
    value: int
    trust: int


@attrs.frozen
class CacheSize:
    """Size of the KV cache in tokens as printed (wrong for hybrid models before 0.21)."""

    tokens: int


@attrs.frozen
class Blocks:
    """Number of KV blocks by device word; `swap` tells that a second number, the swap space, was printed with it."""

    device: str
    count: int
    swap: bool


@attrs.frozen
class Concurrency:
    """How many requests of `max_model_len` tokens fit, rounded to two places."""

    max_model_len: int
    requests: float


@attrs.frozen
class Override:
    """The number of blocks was overridden; from 0 it is a passing state of memory profiling."""

    found: int
    used: int


@attrs.frozen
class BlockTotal:
    """Number of KV blocks over all engines."""

    count: int


@attrs.frozen
class Ready:
    """The API server takes requests."""


@attrs.frozen
class Failed:
    """The start failed; because the cache is too small for one request of `max_model_len` where that is given."""

    max_model_len: int | None = None


Statement = (
    Banner | Arguments | EngineStart | Limit | CacheSize | Blocks | Concurrency | Override | BlockTotal | Ready | Failed
)

TRUST_DEFAULT, TRUST_ARGUMENT, TRUST_USED, TRUST_CONFIG, TRUST_CACHE, TRUST_FITTED = range(6)
