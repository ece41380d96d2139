"""Names from outside are bounded: models, reasons, engines and lines that a page has, and that pages had before."""

import pytest

from tidegauge import vllm
from tidegauge.model import Page, SeriesKey
from tidegauge.parsing.exposition import MOST_LINES, NotMetrics, PageReader, TooMuch
from tidegauge.parsing.layout import MOST_FIGURES
from tidegauge.state.backend import Backend, BackendState
from tidegauge.state.bounds import MOST_EXTRAS, MOST_MODELS, Bounds
from tidegauge.state.increases import Increases
from tidegauge.state.lineage import MOST_KEPT


def page(*models, extra="", finished=5.0):
    return Page({SeriesKey(vllm.FINISHED, model, "0", extra): finished for model in models}, {})


def models_of(found):
    return [key.model_name for key in found.values]


class TestModels:
    def test_pages_of_a_usual_server_are_left_alone(self):
        """Two models at every poll are the same page again, not a copy."""
        bounds, given = Bounds(900.0), page("a", "b")

        assert [given, given] == [bounds.within(given, float(at)) for at in (1, 2)]
        assert bounds.within(given, 3.0) is given

    def test_other_models_at_every_poll_are_left_out_and_counted(self):
        """The model that was there first keeps its place however many others pass by."""
        bounds = Bounds(900.0)
        found = [bounds.within(page("first", *(f"{at}-{n}" for n in range(30))), float(at)) for at in range(200)]

        assert MOST_MODELS == len({name for one in found for name in models_of(one)})
        assert all(models_of(one)[0] == "first" for one in found)
        assert {"names": 30} == dict(found[-1].problems)

    def test_models_that_are_gone_for_a_window_make_room(self):
        """A server whose models are exchanged over a month shows today's."""
        bounds = Bounds(900.0)
        bounds.within(page(*(f"old{n}" for n in range(MOST_MODELS))), 1000.0)

        assert [] == models_of(bounds.within(page("new"), 1900.0))
        assert ["new"] == models_of(bounds.within(page("new"), 1901.0))

    def test_reasons_are_bounded_too(self):
        """A label value other than the model's that changes at every poll is cut off as well."""
        bounds = Bounds(900.0)
        found = [bounds.within(page("m", extra=f"reason{at}"), float(at)) for at in range(MOST_EXTRAS + 7)]

        assert MOST_EXTRAS == sum(len(one.values) for one in found)

    def test_what_comes_out_of_a_backend_is_bounded(self):
        """A backend's history names at most so many models however many pass by."""
        state = BackendState(Backend("a"), 900.0, 3600.0, 0.0)
        seen = set()
        for at in range(0, 600, 10):
            new = page(*(f"{at}-{n}" for n in range(20)))
            state.page(state.within(new, float(at)), float(at), 0.1)
            seen.update(state.history(float(at)).models)

        assert MOST_MODELS == len(seen)


class TestEngines:
    def test_engines_that_come_and_go_do_not_pile_up(self):
        """What is remembered of engines that are gone ends; the one that stays is counted on."""
        increases = Increases(900.0)
        for at in range(60):
            values = {SeriesKey(vllm.FINISHED, "m", f"{at}-{n}"): 1.0 for n in range(1000)}
            stays = {SeriesKey(vllm.FINISHED, "stays", "0"): 3.0 * at}
            last = increases.advance(Page(values | stays, {}, process_start=1.0), 100.0 + at)

        assert 3.0 == last.counters[SeriesKey(vllm.FINISHED, "stays")]
        assert len(increases._base.counters) <= MOST_KEPT


class TestPages:
    def test_a_page_of_too_many_figures_is_refused(self):
        """A hundred thousand models in one page are no server's."""
        lines = (f'vllm:num_requests_running{{model_name="{n}"}} 1\n' for n in range(MOST_FIGURES + 1))
        with pytest.raises(TooMuch, match=f"more than {MOST_FIGURES} figures"):
            PageReader().read("".join(lines))

    def test_a_page_of_too_many_lines_is_refused_unread(self):
        """The limit is on lines, whatever they say, and one of its size passes."""
        with pytest.raises(TooMuch, match=f"{MOST_LINES} lines") as caught:
            PageReader().read("vllm:x 1\n" * (MOST_LINES + 1))
        assert isinstance(caught.value, NotMetrics)
        assert "too_large" == caught.value.reason

    @pytest.mark.parametrize(("length", "kept"), [(1024, 1), (1025, 0)])
    def test_a_label_value_beyond_all_measure_costs_its_line(self, length, kept):
        """A model name of a kilobyte is read, a longer one is a fault of its line."""
        body = f'vllm:num_requests_running{{model_name="{"x" * length}"}} 1\nvllm:num_requests_running 2\n'
        found = PageReader().read(body)

        assert 1 + kept == len(found.values)
        assert ({} if kept else {"line": 1}) == dict(found.problems)
