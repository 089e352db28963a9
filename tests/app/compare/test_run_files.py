"""What a folder keeps of a run: every value survives its file."""

from __future__ import annotations

import msgspec

from app.compare.run_files import (
    ChoiceTokens,
    Conditions,
    MachineReading,
    Material,
    PromptTokens,
    RunFacts,
    SpeedRound,
    WindowTokens,
)


def test_every_value_survives_its_file() -> None:
    material = Material(
        tokenizer_hash="h",
        vocabulary_tokens=3,
        windows=(WindowTokens(text_id="a", number=0, token_ids=(1, 2)),),
        prompts=(PromptTokens(prompt_id="p", token_ids=(1,)),),
        choices=(ChoiceTokens(choice_id="c", question_ids=(1,), answers=((1,), (2, 2)), answer_bytes=(1, 2)),),
        sha256="s",
    )
    conditions = Conditions(threads=2, machine=(MachineReading(moment="before", busy_share=0.5),), self_check=0.0)
    speed = SpeedRound(number=1, prefill_tokens_per_s=2.0, decode_tokens_per_s=3.0, ttft_s=0.1, is_noisy=True)
    for value in (material, conditions, RunFacts(device="CPU", notices=("x",)), speed):
        assert msgspec.json.decode(msgspec.json.encode(value), type=type(value)) == value


def test_a_self_check_of_zero_is_not_an_unknown_one() -> None:
    assert b"self_check" in msgspec.json.encode(Conditions(self_check=0.0))
    assert Conditions().self_check is None
