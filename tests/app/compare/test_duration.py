"""The time of a comparison, predicted: it grows with the work, and its words are no more exact than it is."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from app.compare.duration import Duration, Probe, duration_words, fewer_windows, predicted_s, run_s
from app.compare.plan import ComparisonPlan, RunSpec, SpeedSpec, WorkloadSpec
from app.compare.texts import bundled_texts
from app.compare.workload import AMOUNTS, preset, with_windows
from app.units import NBSP

PROBE = Probe(
    prefill_tokens_per_s=100,
    decode_tokens_per_s=15,
    load_s=1.0,
    start_s=1.0,
    size_bytes=4_000_000_000,
    prefill_tokens=512,
)
NAMES = ("F16", "Q8_0", "Q4_K_M")
SIZES = (16_000_000_000, 8_000_000_000, 4_000_000_000)
RUNS = tuple(
    RunSpec(run_id=name, label=name, path=f"/{name}.gguf", size_bytes=size)
    for name, size in zip(NAMES, SIZES, strict=True)
)
ALL = dict.fromkeys(NAMES, PROBE)


def plan_of(workload: WorkloadSpec, **changes: object) -> ComparisonPlan:
    plan = ComparisonPlan(
        comparison_id="one", created_s=0.0, title="A model", reference=RUNS[0], candidates=RUNS[1:], workload=workload
    )
    return msgspec.structs.replace(plan, **changes)


def plan_for(amount: str, **changes: object) -> ComparisonPlan:
    return plan_of(preset(amount, bundled_texts()), **changes)


def test_a_normal_amount_takes_about_a_minute_a_run_at_100_and_15_tokens_a_second():
    """The notes that the amounts are from count 56 s without the speed rounds that warm up."""
    plan = plan_for("normal", with_noise_floor=False)
    assert 45 < run_s(plan, PROBE).total_s < 90


def test_a_larger_amount_takes_longer_in_every_phase():
    found = [predicted_s(plan_for(amount), ALL) for amount in AMOUNTS]
    for smaller, larger in pairwise(found):
        assert smaller.total_s < larger.total_s
        assert smaller.score_s < larger.score_s
        assert smaller.answer_s < larger.answer_s
        assert smaller.force_s < larger.force_s
        assert smaller.speed_s < larger.speed_s
        assert smaller.choice_s <= larger.choice_s
    assert found[2].choice_s > 0


def test_every_window_run_round_and_load_adds_to_it():
    plan = plan_for("normal")
    before = predicted_s(plan, ALL).total_s
    work = plan.workload
    rounds = SpeedSpec(prompt_tokens=512, new_tokens=64, rounds=4)
    more = [
        msgspec.structs.replace(plan, workload=with_windows(work, work.windows + 1)),
        msgspec.structs.replace(plan, workload=msgspec.structs.replace(work, speed=rounds)),
        msgspec.structs.replace(plan, candidates=(*plan.candidates, RUNS[1])),
    ]
    assert all(predicted_s(one, ALL).total_s > before for one in more)
    assert predicted_s(msgspec.structs.replace(plan, with_noise_floor=False), ALL).total_s < before
    slow = msgspec.structs.replace(plan, reference_import="/exported")
    written = {name: _with(PROBE, window_s=5.0, write_s=9.0) for name in NAMES}
    assert predicted_s(slow, written).score_s == predicted_s(plan, written).score_s - 4 * 4.0


def _with(probe: Probe, **changes: float) -> Probe:
    return Probe(**{name: getattr(probe, name) for name in Probe.__slots__} | changes)


def test_a_faster_model_is_predicted_to_take_less():
    plan = plan_for("thorough")
    faster = [
        _with(PROBE, prefill_tokens_per_s=200.0),
        _with(PROBE, decode_tokens_per_s=30.0),
        _with(PROBE, load_s=0.1),
    ]
    slow_s = run_s(plan, PROBE).total_s
    assert all(run_s(plan, probe).total_s < slow_s for probe in faster)


def test_phases_add_up_to_the_total():
    one, other = Duration(1, 2, 3, 4, 5, 6), Duration(load_s=0.5)
    assert one.total_s == 21
    assert one.plus(other) == Duration(1.5, 2, 3, 4, 5, 6)


def test_a_scored_window_that_was_measured_is_believed():
    assert _with(PROBE, window_s=7.5).scored_window_s == 7.5
    assert _with(PROBE, window_s=7.5).written_window_s == 7.5
    assert _with(PROBE, window_s=7.5, write_s=8.0).written_window_s == 8.0
    assert PROBE.scored_window_s > PROBE.prefill_s(512)


def test_a_short_text_takes_at_least_one_pass_over_the_weights():
    assert PROBE.prefill_s(512) == pytest.approx(5.12)
    assert PROBE.prefill_s(1) > PROBE.step_s
    assert PROBE.prefill_s(30) > 30 / 100
    assert Probe(prefill_tokens_per_s=0, decode_tokens_per_s=0).prefill_s(512) == 0


def test_a_run_without_a_probe_is_derived_from_the_one_nearest_in_size():
    """Llama-3.1-8B writes 29.2 tokens a second in F16 and 71.9 in Q4_K_M (llama.cpp, tools/quantize/README.md)."""
    f16 = RunSpec(run_id="F16", label="F16", path="/f16", size_bytes=round(14.96 * 2**30))
    q4 = RunSpec(run_id="Q4_K_M", label="Q4_K_M", path="/q4", size_bytes=round(4.58 * 2**30))
    work = WorkloadSpec(amount="quick", texts=(), speed=SpeedSpec(prompt_tokens=1, new_tokens=1000, rounds=1))
    plan = plan_of(work, reference=q4, candidates=(f16,), with_noise_floor=False)
    probe = Probe(prefill_tokens_per_s=1e6, decode_tokens_per_s=71.9, prefill_tokens=512)
    derived_s = predicted_s(plan, {"Q4_K_M": probe}).speed_s - run_s(plan, probe).speed_s
    assert derived_s == pytest.approx(1000 / 29.2, rel=0.1)


def test_runs_that_do_not_fit_into_memory_together_are_loaded_for_every_turn():
    plan = plan_for("normal")
    together, apart = predicted_s(plan, ALL, free_bytes=2**36), predicted_s(plan, ALL, free_bytes=2**33)
    assert together == predicted_s(plan, ALL)
    loads = len(plan.runs) * (plan.workload.speed.rounds - 1)
    assert apart.load_s == pytest.approx(together.load_s + loads * (PROBE.start_s + PROBE.load_s + 0.2))
    assert apart.speed_s > together.speed_s


def test_without_any_probe_nothing_is_predicted():
    with pytest.raises(ValueError, match="no run"):
        predicted_s(plan_for("quick"), {"another": PROBE})


def test_a_normal_amount_that_takes_too_long_is_made_smaller_and_says_so():
    plan = plan_for("normal")
    slow = dict.fromkeys(NAMES, _with(PROBE, prefill_tokens_per_s=20.0, decode_tokens_per_s=3.0))
    assert fewer_windows(plan, ALL, 2)[0] in (2, 4)
    assert fewer_windows(plan, slow, 2)[0] == 2
    assert "so 2 windows are scored instead of 4" in fewer_windows(plan, slow, 2)[1]
    quick = dict.fromkeys(NAMES, _with(PROBE, prefill_tokens_per_s=1000.0, decode_tokens_per_s=100.0))
    assert fewer_windows(plan, quick, 2) == (4, "")
    assert fewer_windows(plan_for("thorough"), slow, 2) == (16, "")
    assert fewer_windows(plan, {}, 2) == (4, "")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "a few seconds"),
        (7.9, "a few seconds"),
        (8, "about 10 seconds"),
        (43, "about 45 seconds"),
        (55, "about 1 minute"),
        (240, "about 4 minutes"),
        (3500, "about 58 minutes"),
        (3590, "about 1 hour"),
        (4800, "about 1 hour and 20 minutes"),
        (7250, "about 2 hours"),
        (90000, "about 25 hours"),
    ],
)
def test_a_time_in_words_is_no_more_exact_than_a_prediction(seconds, words):
    assert duration_words(seconds).replace(NBSP, " ") == words
