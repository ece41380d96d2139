"""What is wrong with a subject, in the log: once, not at every poll, and never a flood."""

import logging
from typing import Final

import attrs

from tidegauge.clock import Clock

BURST: Final = 5
"""Lines a subject may write at once; then one for each REFILL_SECONDS."""
REFILL_SECONDS: Final = 60.0


@attrs.define
class _Subject:
    """`logged` is what the log says of the subject, empty for well; `kept_back` the changes it does not tell."""

    at: float
    last: str = ""
    logged: str = ""
    allowance: float = BURST
    kept_back: int = 0


class Complaints:
    """Logs a message once until it changes.

    A subject that says something else at every poll, or falls ill and recovers all the time, is kept to its
    allowance; the log then catches up with what holds as soon as it may.
    """

    def __init__(self, clock: Clock, log: logging.Logger) -> None:
        self._clock = clock
        self._log = log
        self._subjects: dict[str, _Subject] = {}

    def tell(self, subject: str, message: str) -> None:
        """Say what is wrong now; an empty message ends the complaint."""
        now = self._clock.now()
        one = self._subjects.setdefault(subject, _Subject(now))
        one.allowance = min(BURST, one.allowance + max(now - one.at, 0.0) / REFILL_SECONDS)
        changed, one.at, one.last = message != one.last, now, message
        if message == one.logged:
            return
        if one.allowance < 1:
            one.kept_back += changed
            return
        more = f" ({one.kept_back} changes before this one not logged)" if one.kept_back else ""
        one.allowance, one.logged, one.kept_back = one.allowance - 1, message, 0
        if message:
            self._log.warning("%s: %s%s", subject, message, more)
        else:
            self._log.info("%s: well again%s", subject, more)

    def forget(self, subject: str) -> None:
        """The subject is no more; one that comes under the same name is another."""
        self._subjects.pop(subject, None)
