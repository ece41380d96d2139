"""Where the files lie that come with this package and are no part of it: rules, boards and runbooks."""

import sysconfig
from pathlib import Path


class MissingError(Exception):
    """No place has them; the message names every place that was looked into."""


def root(entry: str, given: str | None = None) -> Path:
    """The folder that holds *entry*: the one *given*, else the checkout, else `share/tidegauge` of the installation.

    Raises MissingError where there is none.
    """
    places = (
        [Path(given)] if given else [Path(__file__).parents[2], Path(sysconfig.get_path("data"), "share/tidegauge")]
    )
    for place in places:
        if (place / entry).exists():
            return place.resolve()
    raise MissingError(f"no {' or '.join(str(place / entry) for place in places)}")
