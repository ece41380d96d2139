"""Two windows of ten minutes for the comparison board, one after the other, as made-up series of two servers."""

from dashboards.queries import FILTERS
from tests.boards import EVERYTHING, substituted
from tests.unit.board_queries import evaluated
from tidegauge import vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import recorded as rc

MINUTES = 10
SECONDS = 60 * MINUTES
BACKENDS = ("a", "b")
END = "30m"


def of(series, **labels):
    """A series with its labels, as promtool reads it."""
    pairs = (f'{name}="{value}"' for name, value in labels.items())
    return f"{getattr(series, 'name', series)}{{{', '.join(pairs)}}}"


def counted(before, after):
    """A counter that grows by so much in each of the two windows, the same every minute."""
    first, second = before / MINUTES, after / MINUTES
    return f"0+{first:g}x20 {20 * first + second:g}+{second:g}x9"


def stepped(before, after):
    """A gauge that changes from one window to the next."""
    return f"{before:g}x20 {after:g}x9"


def native(family, backend, **labels):
    """One of vLLM's own series of a server."""
    return of(f"vllm:{family}", instance=backend, model_name="m", engine="0", **labels)


def counters(backend, name, *growth):
    """A counter of vLLM."""
    return {native(name, backend): counted(*growth)}


def histogram(backend, family, counts, means):
    """Sum and count of a histogram, from how many were observed in each window and their mean."""
    sums = [count * mean for count, mean in zip(counts, means, strict=True)]
    return {**counters(backend, f"{family}_count", *counts), **counters(backend, f"{family}_sum", *sums)}


def facts(backend, *, slots=(64, 64), budget=(2048, 2048), tokens=(5000, 5000), version=("1", "1"), source="log"):
    """What an exporter knows of a server."""
    old, new = version
    return {
        of(ex.MAX_NUM_SEQS, backend=backend, source=source): stepped(*slots),
        of(ex.MAX_BATCHED_TOKENS, backend=backend, source="log"): stepped(*budget),
        of(ex.KV_CAPACITY, backend=backend, source="metrics"): stepped(*tokens),
        of(ex.BACKEND_INFO, backend=backend, fleet="f", version=old): "1x30" if old == new else "1x20 _x9",
        **({} if old == new else {of(ex.BACKEND_INFO, backend=backend, fleet="f", version=new): "_x21 1x9"}),
    }


def server(backend, *, requests=(300, 300), prompt=(900, 900), output=(40, 40), hit=(0.7, 0.7), up=(1, 1)):
    """A server that Prometheus scrapes."""
    return {
        of(rc.FLEET_MEMBER, fleet="f", backend=backend, model_name="m"): "1x30",
        of(rc.BACKEND_UP, backend=backend): stepped(*up),
        **histogram(backend, vllm.E2E, requests, (2, 2)),
        **histogram(backend, vllm.PROMPT_LENGTH, (300, 300), prompt),
        **histogram(backend, vllm.OUTPUT_LENGTH, (300, 300), output),
        **counters(backend, vllm.PREFIX_QUERIES, 1000, 1000),
        **counters(backend, vllm.PREFIX_HITS, *(1000 * share for share in hit)),
    }


def fleet(*, known=True, **changes):
    """Two servers, and what is known of them; *changes* are of the second."""
    told = {name: changes.pop(name) for name in ("slots", "budget", "tokens", "version", "source") if name in changes}
    series = {**server("a", requests=(200, 200), prompt=(500, 500)), **server("b", **changes)}
    return {**series, **facts("a", slots=(32, 32)), **facts("b", **told)} if known else series


def without(series, *names):
    """The series but for those of these names."""
    return {key: value for key, value in series.items() if not key.startswith(names)}


def compared(tmp_path, series, expr, *, offset=f"{MINUTES}m"):
    """The expression's values at the end of the second window."""
    everything = {variable.removeprefix("$"): EVERYTHING for variable in FILTERS.values()}
    expr = substituted(expr, {**everything, "offset": offset}, span=SECONDS)
    return evaluated(tmp_path, series, expr, END)
