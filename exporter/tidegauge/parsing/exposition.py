"""vLLM's `/metrics` pages, of every version and in every spelling, to `tidegauge.model.Page`.

Read are the Prometheus text format and OpenMetrics, with indentation, blanks around tokens, CRLF, timestamps and
exemplars. The rules that need saying:

- Where a page has a figure in several spellings, today's wins (`tidegauge.parsing.samples.names`).
- Series that differ only in labels which are not ours are one figure: counters, histograms and numbers of requests
  are added up, of KV usage the maximum counts (`tidegauge.parsing.targets`, which tells why, and of Ray's replicas).
- A series that occurs twice counts once, the first time (`duplicate`).
- NaN, infinite values and negative ones where none can be are left out (`value`); a gauge of -1 means "not measured"
  and is left out in silence. A histogram's sum may be negative: vLLM poisons it so, and later rooms must see it.
- A line that cannot be read costs itself (`line`). So does the last line of a body that does not end with a line end:
  the format demands one, and a page cut inside a number cannot be told from a whole one.
"""

from tidegauge import vllm
from tidegauge.model import Page
from tidegauge.parsing import foreign, samples
from tidegauge.parsing.layout import MOST_FIGURES, Layout


class NotMetrics(ValueError):  # noqa: N818 - a finding about the body; the name is public
    """The body is no page of vLLM's: HTML, JSON, another program's or a router's page; `str()` says what was found.

    At most 80 characters of the body are repeated. `reason` is the failed poll's.
    """

    reason = "not_metrics"


class TooMuch(NotMetrics):
    """The body has more lines or figures than any server's page: reading it, and keeping it, has to end somewhere."""

    reason = "too_large"


MOST_LINES = 200_000
"""Far above what 64 engines behind one address print."""


class PageReader:
    """Reads the pages of one backend, one after the other.

    It remembers the last page and how that is laid out, which makes the next one cheap, and nothing older: labels that
    change on every page cost time, not memory. `prefixes` are the ones that family names come with. Not for several
    threads at once.
    """

    def __init__(self, prefixes: tuple[str, ...] = vllm.PREFIXES) -> None:
        self._prefixes = prefixes
        self._table = samples.names(prefixes)
        self._layout: Layout | None = None

    def read(self, body: str) -> Page:
        """The page's figures; raises `NotMetrics`. A body without its last line end loses its last line."""
        body = body.removeprefix("\ufeff")
        found = foreign.document(body)
        if found:
            raise NotMetrics(found)
        if body.count("\n") > MOST_LINES:
            raise TooMuch(f"a page of more than {MOST_LINES} lines")
        lines = body.split("\n")
        if self._layout is None or not self._layout.update(lines):
            self._layout = self._lay_out(lines)
        return self._layout.page()

    def _lay_out(self, lines: list[str]) -> Layout:
        layout = Layout(lines, self._table, self._layout.series if self._layout else {})
        if layout.overfull:
            raise TooMuch(f"a page with more than {MOST_FIGURES} figures")
        if layout.ours:
            return layout
        if layout.routers or not foreign.names_vllm(lines, layout.series, self._prefixes):
            raise NotMetrics(foreign.page(lines, layout.series, layout.routers))
        return layout


def read_page(body: str, prefixes: tuple[str, ...] = vllm.PREFIXES) -> Page:
    """One page on its own; raises `NotMetrics`."""
    return PageReader(prefixes).read(body)
