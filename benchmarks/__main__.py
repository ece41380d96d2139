"""Runs every benchmark, or those named on the command line, and prints their rows."""

import sys

from benchmarks import boards, exposition, fleet, logscan, rules

BENCHMARKS = (exposition, fleet, logscan, rules, boards)


def main():
    wanted = sys.argv[1:]
    for module in BENCHMARKS:
        name = module.__name__.removeprefix("benchmarks.")
        if wanted and name not in wanted:
            continue
        print(f"== {name}: {module.__doc__.splitlines()[0]}", flush=True)
        for row in module.run():
            print(row, flush=True)


if __name__ == "__main__":
    main()
