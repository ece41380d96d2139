"""The configuration file itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tidegauge.config.loader import load
from tidegauge.config.nodes import ConfigError
from tidegauge.config.values import Config
from tidegauge.sources import regular

_LONGEST: Final = 1024 * 1024


def load_file(path: str, env: Mapping[str, str], *, bare: bool = False) -> Config:
    """The configuration of the file at *path*; raises ConfigError for one that cannot be read or used.

    *env* and *bare* as in `load`.
    """
    try:
        content = regular.read_text(Path(path), _LONGEST)
    except regular.UnreadableError as error:
        raise ConfigError(str(error)) from error
    return load(content, path, env, bare=bare)
