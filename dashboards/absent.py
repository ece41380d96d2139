"""Why a panel is empty, in the same words on every board; what one panel alone can say stands with that panel.

What only rules record is not there before they are loaded, whatever servers and exporters do.
"""

from typing import Final

from tidegauge.catalogue import thresholds as th

_ENOUGH: Final = f"{th.MIN_REQUESTS.value:g} requests"
_NO_RULES: Final = "no rules loaded"

NOTHING: Final = "nothing finished in the window"
UNRECORDED: Final = f"{NOTHING}, or {_NO_RULES}"
FEW: Final = f"fewer than {_ENOUGH} finished in the window"
FEW_5M: Final = f"fewer than {_ENOUGH} finished in 5 minutes"
NO_SERVER: Final = f"no server reports, or {_NO_RULES}"
NO_BACKEND: Final = f"no backend known, or {_NO_RULES}"
NO_NATIVE: Final = "no server has series named vllm:…"
NO_PAIR: Final = "needs two busy backends"
NO_EXPORTER: Final = "no exporter"
NO_CALLER: Final = "no caller reports"
NO_CAPACITY: Final = f"{NO_EXPORTER}, KV or prompt size"
NO_CEILING: Final = "no caller, exporter or KV size"
NO_LOG: Final = "no log configured"
