"""What the command line may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli_parser import UsageError, parse


def test_flags_become_values_of_the_settings_type():
    flags = parse(
        [
            *("chat", "--model", "M", "--prompt", "P", "--system", "S", "--backend", "echo"),
            *("--context", "512", "--kv-type", "q8_0", "--threads", "2", "--gpu-layers", "9"),
            *(
                "--temperature",
                "0.5",
                "--top-p",
                "1",
                "--top-k",
                "3",
                "--min-p",
                "0",
                "--seed",
                "5",
                "--max-tokens",
                "6",
            ),
            *("--out", "F", "--force", "--json", "--temporary"),
        ]
    )
    assert vars(flags) == {
        "command": "chat",
        "model": "M",
        "prompt": "P",
        "system": "S",
        "backend": "echo",
        "device": "",
        "context": 512,
        "kv_type": "q8_0",
        "threads": 2,
        "gpu_layers": 9,
        "temperature": 0.5,
        "top_p": 1.0,
        "top_k": 3,
        "min_p": 0.0,
        "seed": 5,
        "max_tokens": 6,
        "draft": None,
        "out": Path("F"),
        "force": True,
        "json": True,
        "temporary": True,
    }


def test_what_is_not_given_is_left_to_the_settings():
    flags = parse(["chat"])
    unset = (
        "context",
        "kv_type",
        "threads",
        "gpu_layers",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "seed",
        "max_tokens",
    )
    assert [getattr(flags, name) for name in unset] == [None] * 10
    assert (flags.model, flags.prompt, flags.system, flags.backend) == ("", None, "", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--temperature", "nan"], "“Temperature” must lie between 0 and 5"),
        (["--max-tokens", "0"], "must lie between 1 and 10,000,000"),
        (["--seed", "-1"], "“Seed” must lie between 0 and"),
        (["--kv-type", "q1"], "“KV cache” must be one of"),
        (["--gpu-layers", "-1"], "“-1” is not a number of layers"),
        (["--gpu-layers", "9" * 9], "is not a number of layers"),
        (["--context", "1.5"], "“1.5” is not a number"),
        (["--backend", "cuda"], "invalid choice: 'cuda'"),
        (["--temp", "1"], "“--temp 1” is not known here"),
        (["--model"], "expected one argument"),
        (["\x1b[31m"], "is not known here"),
    ],
)
def test_a_flag_that_cannot_be_is_told_in_words(arguments, message):
    with pytest.raises(UsageError) as caught:
        parse(["chat", *arguments])
    assert message in caught.value.words.message
    assert "\x1b" not in caught.value.words.message
    assert caught.value.words.message.endswith(".")
    assert caught.value.words.hint == "`cutaway chat --help` lists the flags."


def test_a_slip_of_the_finger_is_answered_with_the_nearest_command():
    with pytest.raises(UsageError) as caught:
        parse(["model"])
    there_are = "There are: chat, models, fit, bench, compare, quantize, selftest."
    assert caught.value.words.hint == f"Did you mean “models”? {there_are}"


@pytest.mark.parametrize("arguments", [["--help"], ["chat", "-h"], ["models", "--help"], ["models", "list", "-h"]])
def test_help_is_given_and_ends(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(arguments)
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("usage: cutaway")


def test_a_measurement_takes_whole_numbers_above_nought():
    flags = parse(
        ["bench", "--model", "M", "--prompt-tokens", "7", "--requests", "3", "--device", "cuda:1", "--ladder"]
    )
    assert (flags.prompt_tokens, flags.new_tokens, flags.requests, flags.repetitions) == (7, None, 3, None)
    assert (flags.device, flags.ladder, flags.json, flags.force) == ("cuda:1", True, False, False)
    for wrong in ("0", "-1", "x", "1000001"):
        with pytest.raises(UsageError, match="is not a number from 1 to"):
            parse(["bench", "--requests", wrong])


def test_only_engines_for_models_are_asked_for_a_list_a_fit_or_a_check():
    for command in (["models", "list"], ["fit", "M"], ["selftest"]):
        assert parse([*command, "--backend", "torch"]).backend == "torch"
        assert parse(command).backend == ""
        with pytest.raises(UsageError):
            parse([*command, "--backend", "echo"])
