"""The designs that were removed: what each would change in the code to come back, and whose tests must notice."""

import attrs


@attrs.frozen
class Mutant:
    """A wrong design: in `module`, `right` replaced by `wrong`; the tests of `subjects` must notice."""

    name: str
    module: str
    right: str
    wrong: str
    subjects: tuple[str, ...]
