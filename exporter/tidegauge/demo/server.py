"""The command that runs one simulated server: `python -m tidegauge.demo.server --port 8101 --log vllm.log`."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import attrs

from tidegauge import signals
from tidegauge.demo.settings import CostModel, EngineSettings
from tidegauge.demo.simserver import SimServer


def parser() -> argparse.ArgumentParser:
    """Flags in vLLM's spelling where vLLM has one; `--cost-...` set the simulated price of work, in seconds."""
    default = EngineSettings()
    flags = argparse.ArgumentParser(prog="python -m tidegauge.demo.server", description=__doc__)
    flags.add_argument("--host", default="127.0.0.1")
    flags.add_argument("--port", type=int, default=0, help="0 takes a free port")
    flags.add_argument("--log", type=Path, help="append the server's log to this file instead of standard output")
    flags.add_argument("--load-seconds", type=float, default=0.0, help="time between start and open port")
    flags.add_argument("--model-name", default=default.model_name)
    flags.add_argument("--max-num-seqs", type=int, default=default.max_num_seqs)
    flags.add_argument("--max-num-batched-tokens", type=int, default=default.max_num_batched_tokens)
    flags.add_argument("--max-model-len", type=int, default=default.max_model_len)
    flags.add_argument("--block-size", type=int, default=default.block_size)
    flags.add_argument("--kv-tokens", type=int, default=default.kv_cache_size_tokens, help="size of the KV cache")
    flags.add_argument("--no-prefix-caching", action="store_true")
    for field in attrs.fields(CostModel):
        flags.add_argument(
            f"--cost-{field.name.replace('_', '-')}", type=float, default=field.default, metavar="SECONDS"
        )
    return flags


def settings_from(arguments: argparse.Namespace) -> EngineSettings:
    """Raises ValueError where vLLM would not start."""
    cost = CostModel(**{field.name: getattr(arguments, f"cost_{field.name}") for field in attrs.fields(CostModel)})
    return EngineSettings.for_kv_tokens(
        arguments.kv_tokens,
        block_size=arguments.block_size,
        model_name=arguments.model_name,
        max_num_seqs=arguments.max_num_seqs,
        max_num_batched_tokens=arguments.max_num_batched_tokens,
        max_model_len=arguments.max_model_len,
        prefix_caching=not arguments.no_prefix_caching,
        cost=cost,
    )


async def serve(arguments: argparse.Namespace, settings: EngineSettings) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = signals.ending()
    with ExitStack() as stack:
        log = stack.enter_context(arguments.log.open("a", encoding="utf-8")) if arguments.log else sys.stdout
        server = SimServer(settings, log, host=arguments.host, port=arguments.port, load_seconds=arguments.load_seconds)
        starting = asyncio.ensure_future(server.start())
        stopping = asyncio.ensure_future(stop.wait())
        await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            await starting
            await stopping
        await server.stop()


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    try:
        asyncio.run(serve(arguments, settings_from(arguments)))
    except (ValueError, OSError) as error:
        print(f"simulated server {arguments.host}:{arguments.port}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
