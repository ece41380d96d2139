"""tidegauge: where the latency of a vLLM fleet goes, and which backend is the odd one out."""

__version__ = "0.1.0"
