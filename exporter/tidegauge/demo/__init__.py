"""A simulated vLLM fleet and a workload of barriers."""
