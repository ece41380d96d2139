"""The configuration: one strict YAML file to frozen values, every mistake named with file, line and key."""

from tidegauge.config.files import load_file
from tidegauge.config.loader import KEYS, for_urls, load
from tidegauge.config.nodes import ConfigError
from tidegauge.config.values import Backend, Callers, Config, LimiterLog, Listen, LogSource

__all__ = [
    "KEYS",
    "Backend",
    "Callers",
    "Config",
    "ConfigError",
    "LimiterLog",
    "Listen",
    "LogSource",
    "for_urls",
    "load",
    "load_file",
]
