"""How many names from outside are kept: a page may have others at every poll, and each is a label value of ours."""

from collections.abc import Iterable
from itertools import chain
from typing import Final

import attrs

from tidegauge.model import Page, SeriesKey

MOST_MODELS: Final = 100
MOST_EXTRAS: Final = 100
"""Values of the labels beyond model and engine, such as reasons."""


class _Known:
    """The first *most* names; one that was not met for *span* seconds makes room for another."""

    def __init__(self, most: int, span: float) -> None:
        self._most = most
        self._span = span
        self._met: dict[str, float] = {}

    def surplus(self, names: Iterable[str], at: float) -> set[str]:
        """The names there is no room for."""
        # Those of this page first: they must not be pushed out by their own neighbours.
        new = [name for name in names if self._met.get(name) is None or self._renew(name, at)]
        if len(self._met) + len(new) > self._most:
            self._met = {name: met for name, met in self._met.items() if at - met <= self._span}
        room = max(self._most - len(self._met), 0)
        self._met.update(dict.fromkeys(new[:room], at))
        return set(new[room:])

    def _renew(self, name: str, at: float) -> bool:
        self._met[name] = at
        return False


class Bounds:
    """Keeps one backend's pages to a bounded number of models and reasons; *span* is the longest window in seconds."""

    def __init__(self, span: float) -> None:
        self._models = _Known(MOST_MODELS, span)
        self._extras = _Known(MOST_EXTRAS, span)

    def within(self, page: Page, at: float) -> Page:
        """The page without what is too much; `problems` then counts the names left out as `names`."""
        keys = list(chain(page.values, page.histograms))
        models = self._models.surplus(dict.fromkeys(key.model_name for key in keys), at)
        extras = self._extras.surplus(dict.fromkeys(key.extra for key in keys), at)
        if not models and not extras:
            return page

        def kept(key: SeriesKey) -> bool:
            return key.model_name not in models and key.extra not in extras

        return attrs.evolve(
            page,
            values={key: value for key, value in page.values.items() if kept(key)},
            histograms={key: value for key, value in page.histograms.items() if kept(key)},
            problems={**page.problems, "names": len(models) + len(extras)},
        )
