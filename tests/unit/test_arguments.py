"""The parser itself: what holds of every option of every command."""

import argparse

from tidegauge.arguments import parser


def commands(of, name="tidegauge"):
    """Every parser by what is typed to reach it."""
    yield name, of
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, below in action.choices.items():
                yield from commands(below, f"{name} {word}")


def test_every_option_says_what_it_is():
    """In `--help`, beside what its value is called."""
    options = [
        (f"{name} {' '.join(action.option_strings)}", action.help)
        for name, one in commands(parser())
        for action in one._actions
        if not isinstance(action, argparse._SubParsersAction)
    ]

    assert "tidegauge rules render -o --out" in dict(options)
    assert [] == [option for option, text in options if not text]


def test_every_command_says_what_it_does():
    """In the `--help` of the command above it."""
    told = [
        (f"{name} {one.dest}", one.help)
        for name, below in commands(parser())
        for action in below._actions
        if isinstance(action, argparse._SubParsersAction)
        for one in action._choices_actions
    ]
    known = {name for name, _ in commands(parser())} - {"tidegauge"}

    assert known == {name for name, text in told if text}
