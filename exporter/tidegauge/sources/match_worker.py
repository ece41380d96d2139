"""The process in which a configured pattern is matched: `match_worker.py PATTERN SECONDS`, lines in, groups out.

A pattern may take longer than the universe lasts on one line, and Python holds the interpreter meanwhile. Here the
system ends the process once a line has cost so many seconds of CPU time. Standard library only: it starts isolated.
"""

import json
import re
import signal
import sys


def main() -> None:
    """For each JSON list of lines: one JSON line each, the groups of the match or null."""
    search, seconds = re.compile(sys.argv[1]).search, float(sys.argv[2])
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    for batch in sys.stdin:
        for line in json.loads(batch):
            signal.setitimer(signal.ITIMER_PROF, seconds)
            found = search(line)
            signal.setitimer(signal.ITIMER_PROF, 0)
            sys.stdout.write(json.dumps(found.groupdict() if found else None) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
