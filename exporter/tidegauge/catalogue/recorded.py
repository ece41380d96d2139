"""Series that recording rules write, `level:metric:operations`."""

from tidegauge.catalogue.series import Recorded

_ALL: list[Recorded] = []


def _recorded(key: str, name: str, unit: str, help_: str, *labels: str) -> Recorded:
    entry = Recorded(key, name, help_, labels, unit)
    _ALL.append(entry)
    return entry


RECORDED: tuple[Recorded, ...] = tuple(_ALL)
