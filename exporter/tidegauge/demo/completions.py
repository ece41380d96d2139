"""The body of POST /v1/completions: lengths in, lengths out. What a prompt says is never kept, only how long it is."""

from collections.abc import Mapping
from typing import Final

from tidegauge.demo.requests import Finished, Request

DEFAULT_MAX_TOKENS: Final = 16
CHARACTERS_PER_TOKEN: Final = 4
PROMPT: Final = "prompt"
PROMPT_TOKENS: Final = "prompt_tokens"
SHARED_TOKENS: Final = "shared_tokens"
MODEL: Final = "model"
USER: Final = "user"
MAX_TOKENS: Final = "max_tokens"


class RefusedError(Exception):
    """A request that vLLM would refuse: HTTP status, and its error body."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": None, "code": status}}


def bad_request(message: str) -> RefusedError:
    return RefusedError(400, "BadRequestError", message)


def request_from(body: object, request_id: str, model_name: str) -> Request:
    """Read a request. Raises `RefusedError` for one that vLLM, or this simulation, does not serve.

    `prompt` is a list of token ids or a string (counted as four characters a token). Two fields are ours:
    `prompt_tokens` stands for a prompt of that length, and `shared_tokens` is how much of it recurs in the later
    prompts of the same `user`.
    """
    if not isinstance(body, dict):
        raise bad_request("the body must be a JSON object")
    if body.get(MODEL, model_name) != model_name:
        raise RefusedError(404, "NotFoundError", f"The model `{body[MODEL]}` does not exist.")
    if body.get("stream"):
        raise bad_request("this simulated server does not stream")
    try:
        return Request(
            request_id=request_id,
            session=str(body.get(USER) or request_id),
            prompt_tokens=_prompt_tokens(body),
            max_tokens=_whole(body, MAX_TOKENS, DEFAULT_MAX_TOKENS),
            shared_tokens=_whole(body, SHARED_TOKENS, 0),
        )
    except ValueError as error:
        raise bad_request(str(error)) from error


def body_for(call: Request, model_name: str) -> dict[str, object]:
    """The body that asks a simulated server for this request."""
    return {
        MODEL: model_name,
        USER: call.session,
        PROMPT_TOKENS: call.prompt_tokens,
        SHARED_TOKENS: call.shared_tokens,
        MAX_TOKENS: call.max_tokens,
    }


def answer(done: Finished, model_name: str) -> dict[str, object]:
    """What vLLM answers, with empty text: usage and per-request timings (milliseconds)."""
    prompt, output = done.request.prompt_tokens, done.output_tokens
    return {
        "id": done.request.request_id,
        "object": "text_completion",
        "created": int(done.arrived),
        "model": model_name,
        "choices": [{"index": 0, "text": "", "logprobs": None, "finish_reason": done.reason}],
        "usage": {
            "prompt_tokens": prompt,
            "total_tokens": prompt + output,
            "completion_tokens": output,
            "prompt_tokens_details": {"cached_tokens": done.cached_tokens},
        },
        "metrics": {
            "time_to_first_token_ms": done.prefill * 1000,
            "generation_time_ms": done.decode * 1000,
            "queue_time_ms": done.queue * 1000,
            "mean_itl_ms": done.time_per_output_token * 1000,
        },
    }


def _prompt_tokens(body: Mapping[str, object]) -> int:
    prompt = body.get(PROMPT)
    if PROMPT_TOKENS in body:
        return _whole(body, PROMPT_TOKENS, 0)
    if isinstance(prompt, str):
        return max(1, len(prompt) // CHARACTERS_PER_TOKEN)
    if isinstance(prompt, list) and all(isinstance(token, int) for token in prompt):
        return len(prompt)
    raise ValueError(f"{PROMPT} must be a string or a list of token ids, or {PROMPT_TOKENS} a number")


def _whole(body: Mapping[str, object], field: str, default: int) -> int:
    value = body.get(field, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{field} must be a whole number")  # noqa: TRY004 - one kind of refusal for all bad fields
    return value
