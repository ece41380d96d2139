"""Polls of several backends as one stream."""

from tidegauge.derive.barriers import infer

IDLE = (0.0, 0.0)


def together(*streams):
    """Readings of several backends in order of time."""
    return sorted((reading for stream in streams for reading in stream), key=lambda reading: reading.at)


def fan_outs(readings):
    return [barrier.fan_out for barrier in infer(readings)[0]]


BURST = [(0, None), IDLE, IDLE, (14, 3), (6, 8), (0, 6), IDLE, IDLE]


def repeated(rows, times):
    """The rows after the first, so many times."""
    return [rows[0], *rows[1:] * times]
