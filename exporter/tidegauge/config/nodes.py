"""YAML nodes with their place in the file, and sections read from them by a table of readers."""

import difflib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import attrs
import yaml

T = TypeVar("T")


class ConfigError(Exception):
    """The configuration cannot be used; the message says where (file, line, key), what was expected, what found."""


@attrs.frozen
class At:
    """A node and where it stands: `key` is its path, such as `backends[1].url`, empty for the whole file."""

    file: str
    key: str
    node: yaml.Node

    def wrong(self, expected: str, found: str | None = None) -> ConfigError:
        """The error that this node is not what was expected."""
        return self.error(f"expected {expected}, found {found or shown(self.node)}")

    def error(self, text: str) -> ConfigError:
        line = self.node.start_mark.line + 1
        return ConfigError(": ".join(part for part in (f"{self.file}:{line}", self.key, text) if part))

    @property
    def is_null(self) -> bool:
        return bool(self.node.tag == "tag:yaml.org,2002:null")


Reader = Callable[[At], Any]


def shown(node: yaml.Node) -> str:
    """What was found, short enough for a message."""
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    if node.tag == "tag:yaml.org,2002:null":
        return "nothing"
    text = str(node.value)
    return repr(text if len(text) <= 60 else text[:57] + "...")


def parse(text: str, file: str) -> At:
    """The root node of a YAML text; raises ConfigError for anything that is not one YAML document."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark is not None else ""
        raise ConfigError(f"{file}{line}: expected YAML, found: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: expected YAML, found: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise ConfigError(f"{file}: expected a configuration, found YAML nested too deeply") from error
    except (ValueError, OverflowError) as error:
        # PyYAML passes on what `chr` says of \U00110000.
        raise ConfigError(f"{file}: expected YAML, found an escape that stands for no character") from error
    if node is None:
        raise ConfigError(f"{file}: expected a configuration with `backends`, found an empty file")
    return At(file, "", node)


def entries(at: At) -> Iterator[tuple[str, At]]:
    """The keys of a mapping with their values; null is an empty mapping; raises ConfigError for a key given twice."""
    if at.is_null:
        return
    if not isinstance(at.node, yaml.MappingNode):
        raise at.wrong("a mapping")
    seen: dict[str, int] = {}
    for key_node, value in at.node.value:
        name = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else shown(key_node)
        place = At(at.file, f"{at.key}.{name}".removeprefix("."), key_node)
        if name in seen:
            raise place.error(f"given twice, first in line {seen[name]}")
        seen[name] = key_node.start_mark.line + 1
        yield name, At(at.file, place.key, value)


def items(at: At) -> list[At]:
    """The elements of a list; raises ConfigError for anything else."""
    if not isinstance(at.node, yaml.SequenceNode):
        raise at.wrong("a list")
    return [At(at.file, f"{at.key}[{number}]", node) for number, node in enumerate(at.node.value)]


def leaves(at: At) -> Iterator[At]:
    """The single values below a node, however deep, in the order of the file."""
    if isinstance(at.node, yaml.ScalarNode):
        yield at
    else:
        below = items(at) if isinstance(at.node, yaml.SequenceNode) else [place for _, place in entries(at)]
        for place in below:
            yield from leaves(place)


def given(at: At, readers: Mapping[str, Reader], cls: type[Any]) -> dict[str, Any]:
    """The values of a section's keys, checked against its table of readers.

    A null stands for the default where the field's default is None. Raises ConfigError for a key that the table
    does not have, a value that its reader refuses, and a key without a default that is missing.
    """
    found = dict(entries(at))
    for name, place in found.items():
        if name not in readers:
            near = difflib.get_close_matches(name, readers, 1)
            raise place.error("unknown key" + (f"; did you mean `{near[0]}`?" if near else ""))
    defaults = {field.name: field.default for field in attrs.fields(cls)}
    for name in readers:
        if defaults[name] is attrs.NOTHING and name not in found:
            raise At(at.file, f"{at.key}.{name}".removeprefix("."), at.node).error("missing")
    return {
        name: readers[name](place) for name, place in found.items() if not (place.is_null and defaults[name] is None)
    }


def section(cls: type[T], readers: Mapping[str, Reader]) -> Callable[[At], T]:
    """A reader that makes a frozen value of a mapping; the table's keys are the fields that can be configured."""

    def read(at: At) -> T:
        return cls(**given(at, readers, cls))

    return read
