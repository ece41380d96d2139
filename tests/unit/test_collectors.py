"""From figures to families: names, labels, and what is left out."""

from math import inf, nan

import pytest
from prometheus_client import CollectorRegistry

from tests.builders import config, figures, histogram, lifetime, page, requests
from tests.golden.everything import everything
from tidegauge import vllm
from tidegauge.catalogue import EXPORTED
from tidegauge.catalogue import exported as ex
from tidegauge.collectors import SUBJECTS, FiguresCollector
from tidegauge.collectors.families import by_label, family, histogram_family
from tidegauge.model import Histogram, Pinned
from tidegauge.state.backend import Backend, BackendState


def samples(moment):
    """{name: {labels: value}} of everything collected."""
    found = {}
    for one in FiguresCollector(lambda: moment).collect():
        for sample in one.samples:
            labels = tuple(sample.labels.values())
            assert labels not in found.setdefault(sample.name, {}), f"{sample.name}{labels} twice"
            found[sample.name][labels] = sample.value
    return found


class TestFamilies:
    def test_row_becomes_a_sample_with_the_catalogues_labels_in_order(self):
        """Whatever order the row has them in."""
        found = family(ex.KV_CAPACITY, [({"source": "log", "backend": "a"}, 7.0)])

        assert [("tidegauge_kv_cache_capacity_tokens", {"backend": "a", "source": "log"}, 7.0)] == [
            (sample.name, sample.labels, sample.value) for sample in found.samples
        ]
        assert ["backend", "source"] == list(found.samples[0].labels)

    @pytest.mark.parametrize("value", [None, nan, inf, -inf])
    def test_row_without_a_number_is_left_out(self, value):
        """Unknown is absent; nothing exports NaN."""
        assert [] == family(ex.BACKEND_UP, [({"backend": "a"}, value)]).samples

    def test_empty_label_is_left_out(self):
        """As docs/metrics.md says."""
        found = family(ex.STAGE_SECONDS, [({"fleet": "f", "stage": "client", "backend": ""}, 1.0)])

        assert {"fleet": "f", "stage": "client"} == found.samples[0].labels

    def test_label_that_the_catalogue_does_not_name_is_an_error(self):
        """Which names the series and the label."""
        with pytest.raises(ValueError, match="tidegauge_backend_up: label colour is not in the catalogue"):
            family(ex.BACKEND_UP, [({"backend": "a", "colour": "red"}, 1.0)])

    @pytest.mark.parametrize("series", [one for one in EXPORTED if one.kind != "histogram"], ids=lambda one: one.name)
    def test_every_series_is_exposed_under_its_own_name(self, series):
        """Counters end in _total once, whatever the library adds."""
        found = family(series, [({}, 3.0)])

        assert (series.kind, [series.name]) == (found.type, [sample.name for sample in found.samples])

    def test_histogram_has_buckets_count_and_sum(self):
        """The last edge is +Inf."""
        found = histogram_family(ex.CALLER_WAIT, [({"fleet": "f"}, histogram([0.2, 3.0], (0.25, 2.0, inf)))])

        assert [("0.25", 1.0), ("2.0", 1.0), ("+Inf", 2.0)] == [
            (sample.labels["le"], sample.value) for sample in found.samples if sample.name.endswith("_bucket")
        ]
        assert {"_count": 2.0, "_sum": 3.2} == {
            sample.name.removeprefix(ex.CALLER_WAIT.name): sample.value
            for sample in found.samples
            if not sample.name.endswith("_bucket")
        }

    def test_rows_by_label(self):
        """One per entry."""
        assert [({"backend": "a", "reason": "dns"}, 2), ({"backend": "a", "reason": "tls"}, 3)] == list(
            by_label({"backend": "a"}, "reason", {"dns": 2, "tls": 3})
        )


class TestCollector:
    def test_families_come_in_one_piece_each(self):
        """No family is given by two subjects."""
        names = [one.name for one in FiguresCollector(everything).collect()]

        assert len(names) == len(set(names))
        assert len(SUBJECTS) == len(set(SUBJECTS))

    def test_registers_in_any_registry_without_being_asked_for_figures(self):
        """Registration happens before the first poll."""
        registry = CollectorRegistry()
        registry.register(FiguresCollector(lambda: pytest.fail("asked too early")))

    def test_figures_are_those_of_the_scrape(self):
        """Not of the registration."""
        moments = [figures(), figures(lifetime("a", page({})))]
        collector = FiguresCollector(lambda: moments.pop(0))
        first, second = (
            {one.name: one.samples for one in collector.collect()}[ex.BACKENDS_CONFIGURED.name] for _ in range(2)
        )

        assert (0.0, 1.0) == (first[0].value, second[0].value)


class TestUnknown:
    def test_backend_that_was_never_polled_has_no_up(self):
        """Neither up nor down; the configuration names it."""
        found = samples(figures(BackendState(Backend("a"), 900.0, 3600.0, 0.0)))

        assert ex.BACKEND_UP.name not in found
        assert {(): 1.0} == found[ex.BACKENDS_CONFIGURED.name]
        assert {ex.BUILD_INFO.name, ex.WINDOW_SECONDS.name, ex.BACKENDS_CONFIGURED.name} < found.keys()
        for series in (
            ex.KV_CAPACITY,
            ex.MAX_NUM_SEQS,
            ex.REQUEST_CAPACITY,
            ex.STAGE_SECONDS,
            ex.LOG_UP,
            ex.SCRAPE_DURATION,
        ):
            assert series.name not in found, series.name

    def test_down_backend_keeps_facts_and_loses_nothing_else_silently(self):
        """Up is 0, its capacity is known, the fleet's is without it."""
        one = lifetime(
            Backend("a", None, Pinned(), 100.0),
            page({}, configs=[config(kv_cache_size_tokens=1000)], values={vllm.RUNNING: 1.0}),
        )
        one.failed("refused", 0.25)
        found = samples(figures(one))

        assert {("a",): 0.0} == found[ex.BACKEND_UP.name]
        assert {("a",): 0.25} == found[ex.SCRAPE_DURATION.name]
        assert {("a", "refused"): 1.0} == found[ex.SCRAPE_FAILURES.name]
        assert {("a", "p90_prompt"): 10.0} == found[ex.REQUEST_CAPACITY.name]
        assert ex.FLEET_REQUEST_CAPACITY.name not in found

    def test_everyone_late_has_no_effective_waves(self):
        """Infinite is absent, the late ratio tells."""
        found = samples(figures(lifetime("a", page(requests(*[(20.0, 1.0, 1.0, 0.0)] * 30)))))

        assert {("a", "m", "server"): 1.0} == found[ex.QUEUE_LATE_RATIO.name]
        assert ex.QUEUE_WAVES.name not in found

    def test_too_few_requests_have_means_and_no_split(self):
        """Three requests have a mean; they are no distribution."""
        found = samples(figures(lifetime("a", page(requests(*[(20.0, 1.0, 1.0, 0.0)] * 3)))))

        assert {("a", "m"): 22.0} == found[ex.E2E_SECONDS.name]
        assert {("a", "m"): 3.0} == found[ex.WINDOW_REQUESTS.name]
        assert ex.QUEUE_TIME.name not in found


class TestValues:
    def test_twin_is_marked_and_state_set_has_one_state(self):
        """0 for the second name of one server; exactly one state of a ceiling is 1."""
        one = page(requests((0.1, 0.1, 0.1, 0.1)), values={vllm.PROMPT_TOKENS: 5.0})
        found = samples(figures(lifetime("a", one), lifetime("again", one)))

        assert {("a",): 1.0, ("again",): 0.0} == found[ex.BACKEND_DISTINCT.name]
        states = samples(everything())[ex.CEILING_STATE.name]
        for ceiling in ("client", "server"):
            assert 1.0 == sum(value for labels, value in states.items() if ceiling in labels)

    def test_shares_of_the_server_stages_add_up_to_one(self):
        """For every backend and model; client has no share of the servers' time."""
        shares = samples(everything())[ex.STAGE_SHARE.name]

        for backend in ("10.0.0.1:8000", "10.0.0.2:8000"):
            assert 1.0 == pytest.approx(sum(value for labels, value in shares.items() if labels[0] == backend))
        assert all("client" not in labels for labels in shares)

    def test_quantiles_are_labelled_by_their_order(self):
        """0.5, 0.9, 0.99 at the server and at the caller."""
        found = samples(everything())[ex.QUEUE_TIME.name]

        assert {"0.5", "0.9", "0.99"} == {labels[-1] for labels in found}
        assert {"server", "caller"} == {labels[-2] for labels in found}

    def test_histogram_without_a_sum_is_no_error(self):
        """A family is still a family."""
        found = histogram_family(ex.CALLER_WAIT, [({"fleet": "f"}, Histogram((inf,), (0.0,), None, None))])

        assert found.samples
