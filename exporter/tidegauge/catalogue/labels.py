"""Label names and the values that are fixed, with their meaning."""

BACKEND = "backend"
MODEL_NAME = "model_name"
FLEET = "fleet"
STAGE = "stage"
SOURCE = "source"
BASIS = "basis"
WHERE = "where"
CAUSE = "cause"
QUANTILE = "quantile"
STAT = "stat"
REASON = "reason"
RESULT = "result"
CEILING = "ceiling"
STATE = "state"
VERSION = "version"
CUT = "cut"
FINISHED_REASON = "finished_reason"
SIGNAL = "signal"
SLI = "sli"
LEVEL = "level"
GPU = "gpu"

LABELS = {
    BACKEND: "the vLLM endpoint, `host:port` unless configured",
    MODEL_NAME: "the served model name, where vLLM has it; absent on facts about the server",
    FLEET: "a named group of backends, else the model name",
    STAGE: "client, queue, prefill, decode or other",
    SOURCE: "where the figure came from",
    BASIS: "what one request is assumed to hold",
    WHERE: "server (vLLM's queue) or caller (the limiter's wait)",
    CAUSE: "why requests wait",
    QUANTILE: "order of the quantile, 0 to 1",
    STAT: "median, p90 or max",
    REASON: "why something failed, was dropped or changed",
    RESULT: "of lines: parsed, ignored or dropped; of events: accepted, duplicate, unmatched, out_of_order, abandoned",
    CEILING: "client (the caller's limiter) or server (sequence slots)",
    STATE: "clips, inert or unmeasured",
    VERSION: "software version",
    CUT: "the fraction of a stage that an optimisation removes, 0 to 1",
    FINISHED_REASON: "vLLM's own: stop, length, abort, error or repetition",
    SIGNAL: "what the backends of a fleet are compared by: queue_late, running or prefix_hit",
    SLI: "ttft, tpot or e2e",
    LEVEL: "scheduling, memory, compute, false_compute, communication, none or unknown (not enough evidence)",
    GPU: "seen or unseen: whether GPU figures were part of the evidence",
}

SERVER_STAGES = ("queue", "prefill", "decode", "other")
STAGES = ("client", *SERVER_STAGES)
FACT_SOURCES = ("config", "metrics", "log", "server_info", "observed")
"""Sources of facts about a server, the most trusted first."""
SOURCES = (*FACT_SOURCES, "reported", "inferred")
BASES = ("p90_prompt", "p90_prompt_and_output", "context_window")
CAUSES = ("caller", "deferred", "kv_cache", "sequence_slots", "prefill_budget", "unknown")
STATES = ("clips", "inert", "unmeasured")
SERVER = "server"
CALLER = "caller"
CLIENT = "client"
