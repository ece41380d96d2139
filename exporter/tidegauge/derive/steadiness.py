"""How sure it is that calls arrive in bursts and not steadily.

Steady traffic, cut into barriers by its own pauses, would look like small barriers. So would-be barriers are believed
only if steady traffic could hardly have brought their calls. Steady traffic is a Poisson process whose rate changes
slowly: of the calls that came in two intervals next to each other, each came in the first with a chance of one half
(more exactly: that interval's share of the time), so the split is binomial. A burst puts them on one side. The
evidence of a pair is the likelihood of its split under any unequal chance (an arcsine, that is Jeffreys, prior) over
the binomial one. Pairs multiply. Against steady traffic such a product exceeds X with a chance of at most 1/X
(Markov's inequality), so its size is the confidence: no rate has to be known, and idle time says nothing either way.
One pair may say at most 100, so that traffic which merely begins or ends, once, is not taken for bursts.

One burst alone is told from traffic that begins and ends by three intervals in a row: where the middle one stands out
from both neighbours, no rate that rises or falls explains it. The evidence of the three is the lesser of the two
pairs'.

Bursts show at the scale of a barrier, which is not known, so intervals of one, two and four polls are looked at, each
in pairs and threes that do not overlap, from every first interval; the mean of likelihood ratios is one again.
"""

from collections import deque
from math import exp, floor, lgamma, log, pi
from typing import Final

import attrs

SURE: Final = log(1e4)
"""Log evidence from which arrivals are bursts: two pairs that say all they can, or many that say a little."""
RECENT: Final = 8
"""Would-be barriers that may bring no evidence of their own before older evidence counts for nothing any more."""
MOST: Final = log(100.0)
"""The most that one pair may say, and one would-be barrier on the side of steady traffic."""
PLATEAU: Final = 8
"""Intervals from which on a plateau is told from in-flight that only happens not to change much."""
_SCALES: Final = (1, 2, 4)
_WAYS: Final = 5
"""Of pairs there are two sets that do not overlap, of threes three."""
_PAIRINGS: Final = _WAYS * len(_SCALES)


def pair_evidence(first: float, second: float, share: float = 0.5, most: float = MOST) -> float:
    """Log evidence for bursts of two neighbouring intervals' arrivals; *share* is the first one's part of the time."""
    calls = first + second
    if calls <= 1 or not 0 < share < 1:
        return 0.0
    steady = first * log(share) + second * log(1 - share)
    bursts = lgamma(first + 0.5) + lgamma(second + 0.5) - lgamma(calls + 1) - log(pi)
    return min(bursts - steady, most)


@attrs.frozen
class Arrivals:
    """A backend's poll: `calls` arrived in `seconds` before `at`; `in_flight` is the fleet's before it.

    `replacing` tells that they came in a barrier that was under way.
    """

    at: float
    seconds: float
    calls: float
    in_flight: float
    replacing: bool


def _zeros() -> list[float]:
    return [0.0] * _PAIRINGS


@attrs.define
class Episode:
    """What one would-be barrier says: log evidence by pairing, and the part of it that lies on a plateau.

    `swing` is how much in-flight changed on the plateau (squares summed), `free_swing` how much it would have changed
    had arrivals not waited for departures (an M/G/infinity queue with the same rate and the same mean in flight).
    """

    whole: list[float] = attrs.field(factory=_zeros)
    plateau: list[float] = attrs.field(factory=_zeros)
    swing: float = 0.0
    free_swing: float = 0.0
    intervals: int = 0

    @property
    def pinned(self) -> bool:
        """Whether something held in-flight in place: arrivals followed departures."""
        return self.intervals >= PLATEAU and self.swing <= self.free_swing / 2

    @property
    def steady(self) -> bool:
        """Whether this one by itself looks like steady traffic."""
        return max(self.whole) <= -MOST and not self.pinned

    def evidence(self) -> list[float]:
        """Log evidence by pairing; where arrivals follow departures, their evenness says nothing."""
        parts = zip(self.whole, self.plateau, strict=True)
        return [max(whole - plateau if self.pinned else whole, -MOST) for whole, plateau in parts]


@attrs.define
class _Slot:
    index: int
    began_with: float
    calls: float = 0.0
    exposure: float = 0.0
    replacing: bool = False


class _Scale:
    """Arrivals per interval of one length; intervals that are over are compared with their neighbours."""

    def __init__(self, width: float) -> None:
        self._width = width
        self._slots: deque[_Slot] = deque(maxlen=4)

    def add(self, arrivals: Arrivals) -> list[_Slot]:
        """Count them; when an interval is thereby over: it and those directly before it, at most three in all."""
        index = floor(arrivals.at / self._width)
        over = not self._slots or index > self._slots[-1].index
        done = self._row() if over and self._slots else []
        if over:
            self._slots.append(_Slot(index, arrivals.in_flight))
        slot = self._slots[-1]
        slot.calls += arrivals.calls
        slot.exposure += arrivals.seconds
        slot.replacing |= arrivals.replacing
        return done

    def _row(self) -> list[_Slot]:
        row: list[_Slot] = []
        for slot in reversed(self._slots):
            if len(row) == 3 or (row and slot.index != row[0].index - 1):
                break
            row.insert(0, slot)
        return row


def _evidence(first: _Slot, second: _Slot, most: float) -> float:
    exposure = first.exposure + second.exposure
    return pair_evidence(first.calls, second.calls, first.exposure / exposure if exposure > 0 else 0.0, most)


def peak_evidence(first: _Slot, middle: _Slot, last: _Slot) -> float:
    """Log evidence of three neighbouring intervals; what is no peak can speak for steady traffic only."""
    lesser = min(_evidence(first, middle, SURE + MOST), _evidence(middle, last, SURE + MOST))
    return lesser if middle.calls > max(first.calls, last.calls) else min(lesser, 0.0)


def _mean_ratio(logs: list[float]) -> float:
    """Logarithm of the mean of likelihood ratios, which is a likelihood ratio again."""
    best = max(logs)
    return best + log(sum(exp(one - best) for one in logs) / len(logs))


class Steadiness:
    """Follows a fleet's arrivals by the interval between polls (seconds), and judges would-be barriers in a row.

    The evidence is that of the last ones, as many as make it greatest (Page's cumulative sum): what was before, steady
    or not, has no say. It is bounded, and gone once the last few speak against bursts, so that it follows a change.
    """

    def __init__(self, interval: float) -> None:
        self._scales = tuple(_Scale(interval * scale) for scale in _SCALES)
        self._episode = Episode()
        self._sums = _zeros()
        self._runs = [0] * _PAIRINGS
        self._recent: deque[list[float]] = deque(maxlen=RECENT)
        self._sure = False

    def add(self, arrivals: Arrivals) -> None:
        """Take one poll of one backend."""
        for place, scale in enumerate(self._scales):
            done = scale.add(arrivals)
            if done:
                self._compare(_WAYS * place, done)
                if place == 0 and done[-1].replacing:
                    self._swing(done[-1], arrivals.in_flight)

    def close(self) -> Episode:
        """The would-be barrier is over: judge it with the ones before."""
        episode, self._episode = self._episode, Episode()
        self._recent.append(episode.evidence())
        for place, evidence in enumerate(self._recent[-1]):
            total = self._sums[place] + evidence
            self._runs[place] = self._runs[place] + 1 if total > 0 else 0
            self._sums[place] = min(max(total, 0.0), SURE + MOST)
        lately = _mean_ratio([sum(column) for column in zip(*self._recent, strict=True)])
        if self._sure and lately < 0:
            self._sums, self._sure = _zeros(), False
        self._sure = self.log_ratio >= (SURE / 2 if self._sure else SURE)
        return episode

    @property
    def log_ratio(self) -> float:
        """Log likelihood ratio of bursts to steady traffic."""
        return _mean_ratio(self._sums)

    @property
    def run(self) -> int:
        """How many of the last would-be barriers carry the evidence.

        One more than those it was booked on: a pair of intervals is complete only when the next one has begun.
        """
        return max(self._runs) + 1

    @property
    def sure(self) -> bool:
        """Whether the last would-be barriers are bursts; once sure, half the evidence is enough to stay so."""
        return self._sure

    def _compare(self, place: int, row: list[_Slot]) -> None:
        """Book the evidence of an interval that is over and its neighbours before it."""
        index = row[-1].index
        if len(row) > 1:
            self._book(place + index % 2, _evidence(row[-2], row[-1], MOST), row[-2:])
        if len(row) > 2:
            self._book(place + 2 + index % 3, peak_evidence(row[0], row[1], row[2]), row)

    def _book(self, pairing: int, evidence: float, row: list[_Slot]) -> None:
        self._episode.whole[pairing] += evidence
        if all(slot.replacing for slot in row):
            self._episode.plateau[pairing] += evidence

    def _swing(self, slot: _Slot, in_flight: float) -> None:
        episode = self._episode
        mean = (slot.began_with + in_flight) / 2
        episode.intervals += 1
        episode.swing += (in_flight - slot.began_with) ** 2
        if mean > 0:
            episode.free_swing += 2 * mean * (1 - exp(-slot.calls / mean))
