"""Removed designs of what is made of the counts: queue split, capacity, ceilings, skew, the report."""

from tests.consistency.removed import Mutant

FIGURES = (
    Mutant(
        "median as the lower of the middle two",
        "derive/ceiling.py",
        "Order(median(ranked), ",
        "Order(ranked[(len(ranked) - 1) // 2], ",
        ("ceiling",),
    ),
    Mutant(
        "p50 interpolated below the lowest edge",
        "derive/quantiles.py",
        """    if index in (0, len(finite)):
        return finite[min(index, len(finite) - 1)][0]
    (low, before), (high, upto) = finite[index - 1], finite[index]""",
        """    if index == len(finite):
        return finite[-1][0]
    (low, before), (high, upto) = finite[index - 1] if index else (0.0, 0.0), finite[index]""",
        ("queueing",),
    ),
    Mutant(
        "ratio as the page's only condition",
        "derive/queueing.py",
        "pages=bimodal and impact is not None and impact >= limits.impact",
        "pages=quantiles[0.9] / quantiles[0.5] >= limits.split",
        ("queueing",),
    ),
    Mutant(
        "split without impact pages",
        "derive/queueing.py",
        "pages=bimodal and impact is not None and impact >= limits.impact",
        "pages=bimodal",
        ("queueing",),
    ),
    Mutant(
        "late mean without the on-time requests' edge",
        "derive/queueing.py",
        "(waits.sum - edge * on_time) / late",
        "waits.sum / late",
        ("queueing",),
    ),
    Mutant(
        "waves by floor",
        "derive/ceiling.py",
        "return ceil(fan_out / ceiling)",
        "return max(int(fan_out // ceiling), 1)",
        ("ceiling",),
    ),
    Mutant(
        "every barrier held against today's ceiling",
        "derive/ceiling.py",
        "found = [(fan_out, in_force if value is None else value) for fan_out, value in values]",
        "found = [(fan_out, ceiling.value) for fan_out, value in values]",
        ("ceiling",),
    ),
    Mutant(
        "fleet capacity from the narrowest backend times their number",
        "derive/fleets.py",
        "capacity=_over(counted, sum),",
        "capacity={basis: value * len(counted) for basis, value in _over(counted, min).items()},",
        (
            "figures",
            "figures_callers",
        ),
    ),
    Mutant(
        "capacity of two names of one server",
        "derive/backends.py",
        "return bool(self.history.up) and self.twin_of is None",
        "return bool(self.history.up)",
        (
            "figures",
            "figures_callers",
        ),
    ),
    Mutant(
        "capacity of a backend that is down",
        "derive/backends.py",
        "return bool(self.history.up) and self.twin_of is None",
        "return self.twin_of is None",
        (
            "figures",
            "figures_callers",
        ),
    ),
    Mutant(
        "skew against oneself",
        "derive/fleets.py",
        "distinct = [one for one in backends if one.twin_of is None]",
        "distinct = list(backends)",
        (
            "figures",
            "figures_callers",
        ),
    ),
    Mutant(
        "sums not divided by counts",
        "derive/stages.py",
        "return rise.sum / rise.count",
        "return rise.sum",
        ("stages",),
    ),
    Mutant(
        "fleet stages as a mean of means",
        "derive/stages.py",
        "usable = [part for part in parts if part.requests > 0]",
        "usable = [attrs.evolve(part, requests=1.0) for part in parts if part.requests > 0]",
        ("stages",),
    ),
    Mutant(
        "share of the three called share of end-to-end",
        "derive/stages.py",
        "return self.seconds[stage] / self.e2e",
        "return self.engine_share(stage)",
        ("stages",),
    ),
    Mutant(
        "block count multiplied by the engines that repeat it",
        "derive/capacity.py",
        "return blocks * size",
        "return blocks * size * len(configs)",
        ("capacity",),
    ),
    Mutant(
        "slots of one rank for all",
        "derive/capacity.py",
        '("log", _times(log.max_num_seqs, ranks)),',
        '("log", log.max_num_seqs),',
        ("capacity",),
    ),
    Mutant(
        "observed plateau as a limit",
        "derive/capacity.py",
        "facts.slots.value if facts.slots else None",
        "facts.max_num_seqs.value if facts.max_num_seqs else None",
        ("capacity",),
    ),
    Mutant(
        "roster taken for a measurement",
        "derive/fleets.py",
        "ceilings.state_of(one.value, bound[0] if bound and sources else None)",
        "ceilings.state_of(one.value, bound[0] if bound else None)",
        (
            "figures",
            "figures_callers",
        ),
    ),
    Mutant(
        "roster as the bound of barriers that exceed it",
        "derive/fleets.py",
        "if roster is not None and (largest is None or largest <= roster):",
        "if roster is not None:",
        (
            "figures",
            "figures_callers",
        ),
    ),
    Mutant(
        "ceiling from configured instead of distinct backends",
        "derive/fleets.py",
        "known = _ceilings(name, counted, callers, inferred, settings)",
        "known = _ceilings(name, backends, callers, inferred, settings)",
        (
            "figures",
            "figures_callers",
        ),
    ),
    Mutant(
        "ceiling of so many per backend times healthy ones put back",
        "derive/fleets.py",
        'Ceiling("client", callers.ceiling, ',
        'Ceiling("client", 8.0 * len(counted), ',
        (
            "figures",
            "figures_callers",
        ),
    ),
    Mutant(
        "observed slots as a ceiling",
        "derive/fleets.py",
        "slots = [one.facts.slots for one in counted]",
        "slots = [one.facts.max_num_seqs for one in counted]",
        (
            "figures",
            "figures_callers",
        ),
    ),
    Mutant(
        "fan-out counted in activities",
        "derive/segments.py",
        "self.fan_out += move.arrived - move.retracted",
        "self.fan_out += move.arrived > 0",
        (
            "watch",
            "watch_waiting",
        ),
    ),
    Mutant(
        "hidden wait without preemptions",
        "derive/backends.py",
        "if history.totals.counter(vllm.PREEMPTIONS) <= 0 or not history.totals.seconds:",
        "if not history.totals.seconds:",
        (
            "watch",
            "watch_waiting",
        ),
    ),
    Mutant(
        "skew judged by the catalogue's default",
        "report/verdicts.py",
        "least = thresholds[th.SKEW.key]",
        "least = th.SKEW.value",
        (
            "report_thresholds",
            "verdicts",
        ),
    ),
    Mutant(
        "who waited judged by the catalogue's default",
        "report/verdicts.py",
        'queue["late_ratio"] >= thresholds[th.BIMODAL_LATE_LOW.key]',
        'queue["late_ratio"] >= th.BIMODAL_LATE_LOW.value',
        (
            "report_thresholds",
            "verdicts",
        ),
    ),
    Mutant(
        "cost of a queue judged by the catalogue's default",
        "report/verdicts.py",
        'queue["impact_ratio"] >= thresholds[th.PAGE_IMPACT.key]',
        'queue["impact_ratio"] >= th.PAGE_IMPACT.value',
        (
            "report_thresholds",
            "verdicts",
        ),
    ),
    Mutant(
        "figures judged by the catalogue's defaults",
        "derive/settings.py",
        "return Limits.of(self.thresholds)",
        "return Limits.of(th.DEFAULTS)",
        ("report_thresholds",),
    ),
    Mutant(
        "slots of a capture seen by the catalogue's default",
        "report/replay.py",
        "-inf if single else first, kv_full)",
        "-inf if single else first)",
        ("report_thresholds",),
    ),
    Mutant(
        "every split the finding",
        "report/verdicts.py",
        'if queue["pages"]:',
        "if impact is not None:",
        (
            "report_thresholds",
            "verdicts",
        ),
    ),
)
