"""Requests as an engine gets them, and what is known when they are over. No text anywhere, only lengths."""

import attrs


@attrs.frozen
class Request:
    """What a client asks for.

    `session` names whose prefix the prompt begins with; `shared_tokens` of it recur in the session's later prompts and
    can be found in the cache. The answer has `output_tokens` tokens, by default `max_tokens`.
    """

    request_id: str
    session: str
    prompt_tokens: int = attrs.field(validator=attrs.validators.ge(1))
    max_tokens: int = attrs.field(validator=attrs.validators.ge(1))
    shared_tokens: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    output_tokens: int | None = None

    @property
    def length(self) -> int:
        """Tokens the answer will have."""
        return self.max_tokens if self.output_tokens is None else min(self.output_tokens, self.max_tokens)


@attrs.frozen
class Finished:
    """A finished request with the stamps that vLLM V1 takes, in seconds on the engine's clock.

    `arrived` and `ended` are the API server's, the others the engine's; `scheduled` is the first scheduling, so what a
    preempted request waits later is in its decode (or prefill) time.
    """

    request: Request
    arrived: float
    queued: float
    scheduled: float
    first_token: float
    last_token: float
    ended: float
    cached_tokens: int
    output_tokens: int
    preemptions: int

    @property
    def reason(self) -> str:
        """`length` where the limit ended the answer, else `stop`."""
        return "length" if self.output_tokens == self.request.max_tokens else "stop"

    @property
    def queue(self) -> float:
        return self.scheduled - self.queued

    @property
    def prefill(self) -> float:
        return self.first_token - self.scheduled

    @property
    def decode(self) -> float:
        return self.last_token - self.first_token

    @property
    def inference(self) -> float:
        return self.last_token - self.scheduled

    @property
    def e2e(self) -> float:
        return self.ended - self.arrived

    @property
    def other(self) -> float:
        """What end-to-end time holds beyond queue, prefill and decode."""
        return self.e2e - self.queue - self.inference

    @property
    def time_per_output_token(self) -> float:
        """Mean seconds per token after the first; 0 for one token, as vLLM has it."""
        return self.decode / (self.output_tokens - 1) if self.output_tokens > 1 else 0.0
