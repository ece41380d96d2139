"""A model of one vLLM V1 engine in discrete events: no wall clock, no threads, the same every time.

Time is a number that `advance` moves. A step is planned when it begins and takes effect when it ends: running requests
come first (one token each for those that decode), then waiting ones in order of arrival while slots, KV blocks and the
token budget last; long prompts are prefilled in chunks. A request that arrives during a step is seen, and stamped as
queued, when that step ends. If KV blocks run out, the most recently admitted request is preempted: it loses its blocks,
goes to the front of the queue, starts again, and nobody is admitted in that step. A new request is admitted only if its
whole sequence fits. Left out: asynchronous scheduling, priorities, parallel sampling, speculative decoding.
"""

import heapq
from collections import deque
from itertools import count

import attrs

from tidegauge import vllm
from tidegauge.demo.blocks import BlockPool, Holding
from tidegauge.demo.requests import Finished, Request
from tidegauge.demo.settings import EngineSettings
from tidegauge.demo.tally import Tally


@attrs.define(eq=False)
class _Sequence:
    """A request on its way: tokens with KV computed, tokens produced, stamps."""

    request: Request
    arrived: float
    queued: float = 0.0
    scheduled: float = 0.0
    first_token: float = 0.0
    last_token: float = 0.0
    computed: int = 0
    produced: int = 0
    cached: int = 0
    preemptions: int = 0
    holding: Holding | None = None
    aborted: bool = False

    @property
    def total(self) -> int:
        return self.request.prompt_tokens + self.produced


@attrs.frozen
class _Step:
    end: float
    parts: list[tuple[_Sequence, int]]


class Engine:
    """One engine and its queue; `start` is the unix time (or any number) at which it came up."""

    def __init__(self, settings: EngineSettings, start: float = 0.0) -> None:
        self.settings = settings
        self.started = start
        self.now = start
        self.tally = Tally(settings.max_model_len)
        self.pool = BlockPool(settings.num_blocks, caching=settings.prefix_caching)
        self._frontend_free = start
        self._inbox: list[tuple[float, int, _Sequence]] = []
        self._order = count()
        self._waiting: deque[_Sequence] = deque()
        self._running: list[_Sequence] = []
        self._step: _Step | None = None
        self._alive: dict[str, _Sequence] = {}

    @property
    def running(self) -> int:
        """Requests that hold a sequence slot now."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Requests in the engine's queue now."""
        return len(self._waiting)

    @property
    def unfinished(self) -> int:
        """Requests submitted and neither finished nor aborted."""
        return len(self._alive)

    def submit(self, request: Request, at: float) -> None:
        """A request reaches the API server. Raises ValueError if it is in the past or too long for the model."""
        if at < self.now:
            raise ValueError(f"request {request.request_id} arrives at {at}, the engine is at {self.now}")
        if request.prompt_tokens + request.max_tokens > self.settings.max_model_len:
            raise ValueError(
                f"This model's maximum context length is {self.settings.max_model_len} tokens. However, you requested "
                f"{request.max_tokens} output tokens and your prompt contains {request.prompt_tokens} input tokens"
            )
        if request.request_id in self._alive:
            raise ValueError(f"request {request.request_id} is already here")
        sequence = _Sequence(request, at)
        self._alive[request.request_id] = sequence
        self._frontend_free = max(self._frontend_free, at) + self.settings.cost.admit(request.prompt_tokens)
        heapq.heappush(self._inbox, (self._frontend_free, next(self._order), sequence))

    def abort(self, request_id: str) -> bool:
        """The client has gone: drop the request, of which no per-request series will tell; false if it is not here."""
        sequence = self._alive.pop(request_id, None)
        if sequence is None:
            return False
        sequence.aborted = True
        if self._step is None:
            self._drop_aborted()
            self._set_gauges()
        return True

    def next_event(self) -> float | None:
        """When something happens next; None while there is nothing to do."""
        if self._step is not None:
            return self._step.end
        return max(self.now, self._inbox[0][0]) if self._inbox else None

    def advance(self, until: float) -> list[Finished]:
        """Let time pass, and return what finished; steps that end at `until` are included."""
        done: list[Finished] = []
        while (event := self.next_event()) is not None and event <= until:
            self.now = event
            if self._step is not None:
                step, self._step = self._step, None
                done += self._complete(step)
            self._receive()
            self._begin()
        self.now = max(self.now, until)
        return done

    def _receive(self) -> None:
        while self._inbox and self._inbox[0][0] <= self.now:
            sequence = heapq.heappop(self._inbox)[2]
            if not sequence.aborted:
                sequence.queued = self.now
                self._waiting.append(sequence)

    def _begin(self) -> None:
        if not self._running and not self._waiting:
            return
        budget = self.settings.max_num_batched_tokens
        parts, preempted = self._schedule_running(budget)
        if not preempted:
            self._admit(parts, budget - sum(tokens for _, tokens in parts))
        self._step = _Step(self.now + self._duration(parts), parts)

    def _schedule_running(self, budget: int) -> tuple[list[tuple[_Sequence, int]], bool]:
        parts: list[tuple[_Sequence, int]] = []
        preempted = False
        position = 0
        while position < len(self._running) and budget > 0:
            sequence = self._running[position]
            tokens = min(sequence.total - sequence.computed, budget)
            while not (fits := self._extend(sequence, tokens)):
                victim = self._running.pop()
                self._preempt(victim)
                preempted = True
                if victim is sequence:
                    break
            if not fits:
                break
            parts.append((sequence, tokens))
            budget -= tokens
            position += 1
        return parts, preempted

    def _admit(self, parts: list[tuple[_Sequence, int]], budget: int) -> None:
        while self._waiting and budget > 0 and len(self._running) < self.settings.max_num_seqs:
            sequence = self._waiting[0]
            request = sequence.request
            hit = self._cached_blocks(sequence)
            if not self.pool.fits(request.session, hit, self.settings.blocks_for(sequence.total) - hit):
                return
            self._waiting.popleft()
            sequence.holding = self.pool.hold(request.request_id, request.session, hit)
            sequence.computed = hit * self.settings.block_size
            tokens = min(sequence.total - sequence.computed, budget)
            self._extend(sequence, tokens)
            self._running.append(sequence)
            parts.append((sequence, tokens))
            budget -= tokens
            if not sequence.preemptions:
                self._stamp_scheduled(sequence)

    def _stamp_scheduled(self, sequence: _Sequence) -> None:
        sequence.scheduled, sequence.cached = self.now, sequence.computed
        if self.settings.prefix_caching:
            self.tally.admitted(sequence.request.prompt_tokens, sequence.cached)

    def _cached_blocks(self, sequence: _Sequence) -> int:
        """Cached blocks at the head of a sequence; its last token is always computed anew."""
        most = min(sequence.request.shared_tokens, sequence.total - 1)
        return self.pool.cached(sequence.request.session, most // self.settings.block_size)

    def _extend(self, sequence: _Sequence, tokens: int) -> bool:
        """Give a sequence the blocks for its next tokens, and its session those that are full."""
        holding = sequence.holding
        if holding is None:
            raise RuntimeError(f"request {sequence.request.request_id} runs without blocks")
        size = self.settings.block_size
        reached = sequence.computed + tokens
        missing = self.settings.blocks_for(reached) - holding.blocks
        if missing > 0 and not self.pool.grow(holding, missing):
            return False
        if sequence.computed < sequence.request.shared_tokens:
            self.pool.publish(holding, min(reached, sequence.request.shared_tokens) // size)
        return True

    def _preempt(self, sequence: _Sequence) -> None:
        self._release(sequence)
        sequence.computed = 0
        sequence.preemptions += 1
        self.tally.counters[vllm.PREEMPTIONS] += 1
        self._waiting.appendleft(sequence)

    def _release(self, sequence: _Sequence) -> None:
        if sequence.holding is not None:
            self.pool.release(sequence.holding)
            sequence.holding = None

    def _duration(self, parts: list[tuple[_Sequence, int]]) -> float:
        decoding = [
            sequence.computed for sequence, tokens in parts if tokens == 1 and sequence.computed == sequence.total - 1
        ]
        prefill_tokens = sum(tokens for _, tokens in parts) - len(decoding)
        return self.settings.cost.step(prefill_tokens, len(decoding), sum(decoding))

    def _complete(self, step: _Step) -> list[Finished]:
        """Book a step's outputs, drop what ended, and set the gauges."""
        done: list[Finished] = []
        prompt_tokens = output_tokens = 0
        for sequence, tokens in step.parts:
            sequence.computed += tokens
            if sequence.aborted or sequence.computed < sequence.total:
                continue
            if not sequence.produced:
                prompt_tokens += sequence.request.prompt_tokens - sequence.cached
            output_tokens += 1
            self._emit(sequence)
            if sequence.produced == sequence.request.length:
                done.append(self._finish(sequence))
        if output_tokens:
            self.tally.step(prompt_tokens, output_tokens)
        for finished in done:
            self.tally.finished(finished)
        self._drop_aborted()
        self._set_gauges()
        return done

    def _emit(self, sequence: _Sequence) -> None:
        if sequence.produced:
            self.tally.histograms[vllm.ITL].observe(self.now - sequence.last_token)
        else:
            sequence.first_token = self.now
            waited = self.now + self.settings.cost.output - sequence.arrived
            self.tally.first_token(sequence.request.prompt_tokens, sequence.cached, waited)
        sequence.last_token = self.now
        sequence.produced += 1

    def _finish(self, sequence: _Sequence) -> Finished:
        self._release(sequence)
        self._running.remove(sequence)
        del self._alive[sequence.request.request_id]
        return Finished(
            request=sequence.request,
            arrived=sequence.arrived,
            queued=sequence.queued,
            scheduled=sequence.scheduled,
            first_token=sequence.first_token,
            last_token=sequence.last_token,
            ended=self.now + self.settings.cost.output,
            cached_tokens=sequence.cached,
            output_tokens=sequence.produced,
            preemptions=sequence.preemptions,
        )

    def _drop_aborted(self) -> None:
        for sequence in self._running:
            if sequence.aborted:
                self._release(sequence)
        self._running = [sequence for sequence in self._running if not sequence.aborted]
        if any(sequence.aborted for sequence in self._waiting):
            self._waiting = deque(sequence for sequence in self._waiting if not sequence.aborted)

    def _set_gauges(self) -> None:
        gauges = self.tally.gauges
        gauges.running, gauges.waiting = len(self._running), len(self._waiting)
        gauges.kv_usage = self.pool.usage
