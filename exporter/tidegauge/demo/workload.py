"""The calls that agents make: barriers under a seed, and steady traffic. Pure: no engine, no clock, only lengths.

An agent's prompt is its history, which grows from call to call and which its backend may have cached, and a fresh part
(what it sees now), long-tailed. When the history reaches its limit it is summarised: it starts short again, under a new
session, since the old prefix is of no more use. Every agent keeps its backend, as sticky routing has it.
"""

import math
import random
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from tidegauge.demo.requests import Request


@attrs.frozen
class LogNormal:
    """A long-tailed whole number: `median`, `sigma` of its logarithm, cut to `low`..`high`."""

    median: float
    sigma: float
    low: int = 1
    high: int = 1_000_000

    def draw(self, rng: random.Random) -> int:
        return max(self.low, min(self.high, round(rng.lognormvariate(math.log(self.median), self.sigma))))


@attrs.frozen
class Lengths:
    """How long prompts and answers are, in tokens; `growth` is the part of what is fresh that stays in the history.

    A history that reaches `history_limit` is summarised, a prompt never exceeds `prompt_limit`.
    """

    history: LogNormal
    fresh: LogNormal
    output: LogNormal
    growth: float = attrs.field(
        default=0.5, validator=attrs.validators.and_(attrs.validators.ge(0), attrs.validators.le(1))
    )
    history_limit: int = 4000
    prompt_limit: int = 7000

    def __attrs_post_init__(self) -> None:
        if max(self.history_limit, self.history.high) >= self.prompt_limit:
            raise ValueError("prompt_limit must exceed history_limit and the longest new history")


DEMO: Final = Lengths(
    history=LogNormal(200, 0.5, low=32, high=1000),
    fresh=LogNormal(150, 0.8, low=16, high=1500),
    output=LogNormal(40, 0.25, low=16, high=80),
    growth=0.3,
    history_limit=1200,
)
"""A few hundred prompt tokens and a few dozen of output: a wave takes a second or two on the demo's servers."""

CASE: Final = Lengths(
    history=LogNormal(35_000, 0.6, low=4_000, high=90_000),
    fresh=LogNormal(22_000, 0.6, low=2_000, high=60_000),
    output=LogNormal(300, 0.4, low=50, high=1_200),
    growth=0.15,
    history_limit=60_000,
    prompt_limit=128_000,
)
"""Prompts with a 90th percentile around 100,000 tokens."""


@attrs.frozen
class Agent:
    """One agent and the backend (an index into the fleet) that serves all its calls."""

    name: str
    backend: int


@attrs.frozen
class Call:
    """One model call; `barrier` is None for steady traffic."""

    agent: str
    backend: int
    request: Request
    barrier: int | None = None


def roster(agents: int, backends: int, seed: int, weights: Sequence[float] | None = None) -> tuple[Agent, ...]:
    """So many agents spread over the backends: evenly, or by `weights`, one per backend."""
    rng = random.Random(seed)
    if weights is None:
        places = [number % backends for number in range(agents)]
        rng.shuffle(places)
    else:
        places = rng.choices(range(backends), weights, k=agents)
    return tuple(Agent(f"agent-{number:02d}", place) for number, place in enumerate(places))


class Caller:
    """Draws calls; the same seed draws the same calls, whatever the fleet makes of them.

    The agents of a barrier are ready in no particular order.
    """

    def __init__(self, agents: Sequence[Agent], lengths: Lengths, seed: int, act: float = 0.9) -> None:
        """`act` is the probability that an agent takes part in a barrier."""
        if not agents:
            raise ValueError("a roster needs at least one agent")
        self.agents = tuple(agents)
        self._lengths = lengths
        self._act = act
        self._rng = random.Random(seed)
        self._history = {agent.name: lengths.history.draw(self._rng) for agent in agents}
        self._epoch = dict.fromkeys(self._history, 0)
        self._calls = 0

    def barriers(self) -> Iterator[tuple[Call, ...]]:
        """Barriers without end: the calls that each of them launches at once (at least one)."""
        number = 0
        while True:
            acting = [agent for agent in self.agents if self._rng.random() < self._act]
            acting = acting or [self._rng.choice(self.agents)]
            self._rng.shuffle(acting)
            yield tuple(self._call(agent, number) for agent in acting)
            number += 1

    def steady(self, rate: float) -> Iterator[tuple[float, Call]]:
        """Independent calls at `rate` per second on average (Poisson), with the seconds since the first moment."""
        at = 0.0
        while True:
            at += self._rng.expovariate(rate)
            yield at, self._call(self._rng.choice(self.agents), None)

    def _call(self, agent: Agent, barrier: int | None) -> Call:
        history = self._history[agent.name]
        fresh = min(self._lengths.fresh.draw(self._rng), self._lengths.prompt_limit - history)
        kept = history + round(self._lengths.growth * fresh)
        self._calls += 1
        request = Request(
            request_id=f"call-{self._calls}",
            session=f"{agent.name}/{self._epoch[agent.name]}",
            prompt_tokens=history + fresh,
            max_tokens=self._lengths.output.draw(self._rng),
            shared_tokens=kept,
        )
        self._remember(agent, kept)
        return Call(agent.name, agent.backend, request, barrier)

    def _remember(self, agent: Agent, kept: int) -> None:
        if kept >= self._lengths.history_limit:
            self._epoch[agent.name] += 1
            kept = self._lengths.history.draw(self._rng)
        self._history[agent.name] = kept
