"""What a simulated vLLM server is started with, and the price of its work."""

import math
from typing import Final, Self

import attrs

VERSION: Final = "0.32.0"


@attrs.frozen
class CostModel:
    """Seconds that work takes: a stand-in for a GPU, linear in four counts, not a measurement of one.

    A step costs `base + per_prefill_token x tokens + per_decode_sequence x sequences + per_context_token x tokens of
    context that the decoding sequences read`. The API server handles one request after the other (`frontend` each,
    and per prompt token for the tokeniser), and `output` passes between a step's end and its outputs being counted.
    """

    base: float = 0.03
    per_prefill_token: float = 2e-5
    per_decode_sequence: float = 2e-4
    per_context_token: float = 1e-7
    frontend: float = 1e-3
    frontend_per_token: float = 1e-6
    output: float = 1e-3

    def step(self, prefill_tokens: int, decode_sequences: int, context_tokens: int) -> float:
        """Seconds of one engine step."""
        return (
            self.base
            + self.per_prefill_token * prefill_tokens
            + self.per_decode_sequence * decode_sequences
            + self.per_context_token * context_tokens
        )

    def admit(self, prompt_tokens: int) -> float:
        """Seconds of the API server for one request, before the engine can see it."""
        return self.frontend + self.frontend_per_token * prompt_tokens


@attrs.frozen
class EngineSettings:
    """One server: one engine, one model. Block 0 is the null block: counted in `num_blocks`, never usable.

    `kv_tokens` is the size the server reports, where that is no multiple of the block size (as for hybrid models);
    by default it follows from the blocks. Raises ValueError where vLLM would refuse to start.
    """

    model_name: str = "sim/llama"
    max_num_seqs: int = 64
    max_num_batched_tokens: int = 8192
    max_model_len: int = 8192
    block_size: int = 16
    num_blocks: int = 4096
    kv_tokens: int | None = None
    prefix_caching: bool = True
    cost: CostModel = CostModel()

    def __attrs_post_init__(self) -> None:
        if min(self.max_num_seqs, self.max_num_batched_tokens, self.max_model_len, self.block_size) < 1:
            raise ValueError("max_num_seqs, max_num_batched_tokens, max_model_len and block_size must be at least 1")
        if self.num_blocks - 1 < self.blocks_for(self.max_model_len):
            raise ValueError(
                f"max_model_len {self.max_model_len} is larger than what fits into the KV cache: "
                f"{self.num_blocks - 1} blocks of {self.block_size} tokens"
            )

    @classmethod
    def for_kv_tokens(cls, kv_tokens: int, *, block_size: int = 16, **others: object) -> Self:
        """Settings whose server reports exactly so many KV tokens."""
        blocks = kv_tokens // block_size
        return cls(block_size=block_size, num_blocks=blocks, kv_tokens=kv_tokens, **others)  # type: ignore[arg-type]  # the rest is passed through

    def blocks_for(self, tokens: int) -> int:
        """Blocks that so many tokens occupy."""
        return -(-tokens // self.block_size)

    @property
    def max_concurrency(self) -> float:
        """Requests of `max_model_len` that fit, as vLLM computes it from the blocks."""
        return self.num_blocks / self.blocks_for(self.max_model_len)

    @property
    def kv_cache_size_tokens(self) -> int:
        """The KV size that log and metrics report (vLLM since 0.21: concurrency x max_model_len)."""
        return self.kv_tokens or math.floor(self.max_concurrency * self.max_model_len)


CASE: Final = EngineSettings.for_kv_tokens(
    1_490_818,
    model_name="sim/world",
    max_num_seqs=160,
    max_num_batched_tokens=8192,
    max_model_len=131_072,
    cost=CostModel(
        base=8e-3, per_prefill_token=3.5e-5, per_decode_sequence=1e-4, per_context_token=2e-8, frontend_per_token=2e-7
    ),
)
"""A server of the true size: 1,490,818 KV tokens, 160 slots, 8192 tokens a step, a window of 131,072."""
