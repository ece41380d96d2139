"""The page of a server of one model that has finished so many requests."""

from tests.builders import exposition, requests
from tidegauge import vllm


def body(finished, start):
    """Its text; the process began at *start*, in unix seconds."""
    rows = requests(*[(0.1, 0.2, 0.3, 0.1)] * finished)
    values = {vllm.RUNNING: 1.0, vllm.FINISHED: float(finished), vllm.PROMPT_TOKENS: float(finished)}
    return exposition(rows, start=start, values=values)
