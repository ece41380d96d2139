"""What is asked of the servers and what they give: tokens, requests, lengths, refusals, arrivals."""

from tidegauge.catalogue import labels as lb
from tidegauge.catalogue.series import recorded

_MODEL = (lb.BACKEND, lb.MODEL_NAME)

PROMPT_RATE = recorded(
    "prompt_rate", "backend_model:prompt_tokens:rate5m", "tokens/s", "Prompt tokens per second.", *_MODEL
)
OUTPUT_RATE = recorded(
    "output_rate", "backend_model:generation_tokens:rate5m", "tokens/s", "Generated tokens per second.", *_MODEL
)
REQUEST_RATE = recorded(
    "request_rate",
    "backend_model:request_success:rate5m",
    "requests/s",
    "Requests finished per second, for whatever reason.",
    *_MODEL,
)
IN_FLIGHT_5M = recorded(
    "in_flight_5m",
    "backend_model:requests_in_flight:mean5m",
    "requests",
    "Mean of the requests running or waiting in the server, over as long as its throughput is.",
    *_MODEL,
)
FLEET_PROMPT_RATE = recorded(
    "fleet_prompt_rate", "fleet:prompt_tokens:rate5m", "tokens/s", "Prompt tokens per second of the fleet.", lb.FLEET
)
FLEET_OUTPUT_RATE = recorded(
    "fleet_output_rate",
    "fleet:generation_tokens:rate5m",
    "tokens/s",
    "Generated tokens per second of the fleet.",
    lb.FLEET,
)
FLEET_FINISHED_RATE = recorded(
    "fleet_finished_rate",
    "fleet:request_success:rate5m",
    "requests/s",
    "Requests finished per second in the fleet, by vLLM's reason; an abort by the client is in none of them.",
    lb.FLEET,
    lb.FINISHED_REASON,
)
REJECTION_RATE = recorded(
    "rejection_rate",
    "backend_model:admission_rejections:rate5m",
    "requests/s",
    "Requests per second that a queue limit of the server turned away; absent where none was.",
    *_MODEL,
    lb.REASON,
)
ABORTED = recorded(
    "aborted",
    "backend:requests_aborted:window",
    "requests",
    "Requests that left unfinished in the stage window: counted by the exporter, else first tokens less finished "
    "requests less those still running, a lower bound.",
    lb.BACKEND,
)
PROMPT_LENGTH = recorded(
    "prompt_length",
    "backend_model:request_prompt_tokens:quantile",
    "tokens",
    "Quantile of the prompt length of requests finished in the stage window; never merged over servers, whose buckets "
    "depend on max_model_len.",
    *_MODEL,
    lb.QUANTILE,
)
OUTPUT_LENGTH = recorded(
    "output_length",
    "backend_model:request_generation_tokens:quantile",
    "tokens",
    "Quantile of the output length of requests finished in the stage window.",
    *_MODEL,
    lb.QUANTILE,
)
ARRIVAL_RATE = recorded(
    "arrival_rate",
    "backend:arrivals:rate5m",
    "requests/s",
    "Requests per second that arrive at the backend, from the exporter.",
    lb.BACKEND,
)
BURSTINESS = recorded(
    "burstiness",
    "fleet:arrival_burstiness:max",
    "1",
    "P99 of arrivals per second over their mean, from the exporter: Prometheus does not see single seconds.",
    lb.FLEET,
)
