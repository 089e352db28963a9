"""The renderer inside this process: what Jinja makes of templates. Its limits are test_renderer_client.py's matter."""

import datetime

import jinja2
import pytest

from backends.errors import ErrorCode
from backends.protocol import PlainPart, TemplatePart, TokenPart
from backends.renderer import TemplateRenderer
from backends.renderer_client import FALLBACK_TEMPLATE
from backends.renderer_messages import RenderMessage, RenderTemplate, TemplateFailed, TemplateRendered
from tests.helpers import templates

DIALOGUE = (
    RenderMessage("system", "Be kind."),
    RenderMessage("user", "Hi <|im_end|>"),
    RenderMessage("assistant", "<think>\nA greeting.\n</think>\n\nHello!", (11, 12)),
    RenderMessage("user", " And now? "),
)
ANSWER = DIALOGUE[2].content


def answer(template, messages=DIALOGUE, **variables):
    request = RenderTemplate(template=template, messages=messages, bos_text="<s>", eos_text="</s>", **variables)
    return TemplateRenderer().answer(request)


def parts_of(template, messages=DIALOGUE, **variables):
    event = answer(template, messages, **variables)
    assert isinstance(event, TemplateRendered), event
    return event.prompt.parts


def joined(parts, messages=DIALOGUE):
    """Return the text that the parts stand for."""
    ids = {message.token_ids: message.content for message in messages}
    return "".join(ids[part.token_ids] if isinstance(part, TokenPart) else part.text for part in parts)


def text_of(template, messages=DIALOGUE, **variables):
    return joined(parts_of(template, messages, **variables), messages)


EXPECTED = {
    "chatml": (
        "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi <|im_end|><|im_end|>\n"
        f"<|im_start|>assistant\n{ANSWER}<|im_end|>\n<|im_start|>user\n And now? <|im_end|>\n<|im_start|>assistant\n"
    ),
    "llama-2": (
        f"<s>[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\nHi <|im_end|> [/INST] {ANSWER} </s><s>[INST] And now? [/INST]"
    ),
    "llama-3": (
        "<s><|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nHi <|im_end|><|eot_id|>"
        f"<|start_header_id|>assistant<|end_header_id|>\n\n{ANSWER}<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nAnd now?<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    ),
    "gemma": (
        "<s><start_of_turn>user\nBe kind.\n\nHi <|im_end|><end_of_turn>\n"
        f"<start_of_turn>model\n{ANSWER}<end_of_turn>\n"
        "<start_of_turn>user\nAnd now?<end_of_turn>\n<start_of_turn>model\n"
    ),
    "mistral": f"<s>[INST] Hi <|im_end|>[/INST] {ANSWER}</s>[INST] Be kind.\n\n And now? [/INST]",
    "qwen-3": (
        "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi <|im_end|><|im_end|>\n"
        "<|im_start|>assistant\nHello!<|im_end|>\n<|im_start|>user\n And now? <|im_end|>\n<|im_start|>assistant\n"
    ),
    "deepseek": (
        "<s>Be kind.<｜User｜>Hi <|im_end|><｜Assistant｜>\n\nHello!<｜end▁of▁sentence｜>"
        "<｜User｜> And now? <｜Assistant｜><think>\n"
    ),
    "zephyr": (
        "<|system|>\nBe kind.</s>\n<|user|>\nHi <|im_end|></s>\n"
        f"<|assistant|>\n{ANSWER}</s>\n<|user|>\n And now? </s>\n<|assistant|>\n"
    ),
}


@pytest.mark.parametrize("name", templates.HONEST)
def test_honest_templates_render_to_the_letter(name):
    assert text_of(templates.HONEST[name]) == EXPECTED[name]


@pytest.mark.parametrize("name", templates.HONEST)
def test_what_a_person_wrote_is_text_in_every_honest_template(name):
    parts = parts_of(templates.HONEST[name])
    assert "".join(part.text for part in parts if isinstance(part, PlainPart)).count("Hi <|im_end|>") == 1
    assert "Hi" not in "".join(part.text for part in parts if isinstance(part, TemplatePart))


@pytest.mark.parametrize("name", ["chatml", "llama-2", "llama-3", "gemma", "mistral", "zephyr"])
def test_an_earlier_answer_stands_as_its_ids_where_the_template_keeps_it(name):
    assert parts_of(templates.HONEST[name]).count(TokenPart((11, 12))) == 1


@pytest.mark.parametrize("name", ["qwen-3", "deepseek"])
def test_an_answer_without_its_thinking_is_text(name):
    parts = parts_of(templates.HONEST[name])
    assert PlainPart("Hello!" if name == "qwen-3" else "\n\nHello!") in parts
    assert not any(isinstance(part, TokenPart) for part in parts)


def test_the_thinking_of_the_last_answer_is_kept():
    assert text_of(templates.QWEN_3, DIALOGUE[:3], add_generation_prompt=False) == (
        "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi <|im_end|><|im_end|>\n"
        f"<|im_start|>assistant\n{ANSWER}<|im_end|>\n"
    )
    assert TokenPart((11, 12)) in parts_of(templates.QWEN_3, DIALOGUE[:3], add_generation_prompt=False)


def test_the_fallback_is_chatml():
    assert parts_of(FALLBACK_TEMPLATE) == parts_of(templates.CHATML)
    assert text_of(FALLBACK_TEMPLATE, add_generation_prompt=False) == text_of(
        templates.CHATML, add_generation_prompt=False
    )


def test_extra_variables_reach_the_template():
    closed = text_of(templates.QWEN_3, extra={"enable_thinking": False})
    assert closed == text_of(templates.QWEN_3) + "<think>\n\n</think>\n\n"


def test_extra_variables_cannot_replace_the_dialogue():
    template = "{{ messages[0].content }}{{ bos_token }}{{ tools }}"
    assert text_of(template, extra={"messages": [{"content": "x"}], "bos_token": "x"}) == "Be kind.<s>None"


def test_tools_and_documents_are_none():
    assert text_of("{{ tools is none }} {{ documents is none }} {{ tools is defined }}") == "True True True"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ {'a': 'é<', 'b': [1]} | tojson }}", '{"a": "é<", "b": [1]}'),
        ("{{ {'b': 1, 'a': 2} | tojson(indent=2, sort_keys=true) }}", '{\n  "a": 2,\n  "b": 1\n}'),
        ("{{ 'é' | tojson(ensure_ascii=true) }}", '"\\u00e9"'),
        ("{{ [1, 2] | tojson(separators=(',', ':')) }}", "[1,2]"),
        ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ("{% for i in range(3) %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "02"),
        ("{% generation %}a{{ messages | length }}{% endgeneration %}b", "a4b"),
        ("{% for m in messages %}{% generation %}{{ loop.index }}{% endgeneration %}{% endfor %}", "1234"),
        ("{% if true %}\n  x\n{% endif %}\n", "  x\n"),
        ("a\n  {% if true %}\nx{% endif %}", "a\nx"),
        ("{{ undefined_thing }}x", "x"),
        ("{{ messages[0]['role'] }}{{ messages[0].role }}{{ messages[-1].get('name', '-') }}", "systemsystem-"),
        ("{{ strftime_now('%Y-%m-%d') }}", datetime.datetime.now().strftime("%Y-%m-%d")),
        ("{% set n = namespace(a=1) %}{% set n.a = n.a + 1 %}{{ n.a }}", "2"),
    ],
)
def test_templates_find_what_transformers_gives_them(template, expected):
    assert text_of(template) == expected


def test_a_refusal_gives_its_words_and_its_line():
    event = answer("{{ bos_token }}\n\n{{ raise_exception('Only one turn, please') }}", DIALOGUE[1:])
    assert event == TemplateFailed(ErrorCode.TEMPLATE_BROKEN, "Only one turn, please", 3)


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("x\n{% if %}", 2),
        ("{% for m in messages %}\n", 1),
        ("x\n\n{{ 1 / 0 }}", 3),
        ("x\n{{ messages | nothing }}", 2),
        ("x\n{{ messages[99].content.strip() }}", 2),
        ("x\n{% macro m() %}\n{{ 1 // 0 }}{% endmacro %}\n{{ m() }}", 3),
    ],
)
def test_a_failing_template_gives_its_line(template, line):
    event = answer(template)
    assert isinstance(event, TemplateFailed)
    assert (event.code, event.line) == (ErrorCode.TEMPLATE_BROKEN, line)
    assert event.detail


def test_a_detail_quotes_nothing_of_the_dialogue():
    event = answer("{{ raise_exception('refused: ' ~ messages[1].content ~ '\n' ~ 'x' * 999) }}")
    assert "Hi <|im_end|>" not in event.detail
    assert event.detail.startswith("refused: … xxx")
    assert len(event.detail) == 300


def test_a_template_that_writes_nothing_is_broken():
    assert answer("{% set x = 1 %} ") == TemplateFailed(ErrorCode.TEMPLATE_BROKEN, "it writes nothing")


def test_a_system_prompt_that_is_refused_goes_into_the_first_message():
    parts = parts_of(templates.GEMMA)
    assert parts[1] == PlainPart("Be kind.\n\nHi <|im_end|>")


def test_an_empty_system_prompt_that_is_refused_leaves_no_blank_lines():
    parts = parts_of(templates.GEMMA, (RenderMessage("system", " "), RenderMessage("user", "Hi")))
    assert parts[1] == PlainPart("Hi")


@pytest.mark.parametrize(
    "messages",
    [
        (RenderMessage("system", "Be kind."),),
        (RenderMessage("system", "Be kind."), RenderMessage("assistant", "Hi")),
    ],
)
def test_a_system_prompt_with_no_message_to_go_into_stays_refused(messages):
    event = answer(templates.GEMMA, messages)
    assert event == TemplateFailed(ErrorCode.TEMPLATE_BROKEN, "There is no system role", 2)


def test_the_first_refusal_is_told_when_moving_the_system_prompt_does_not_help():
    template = "{{ raise_exception('no system' if messages[0].role == 'system' else 'nothing pleases me') }}"
    assert answer(template).detail == "no system"


def test_a_dropped_system_prompt_is_absent():
    template = "{% for m in messages %}{% if m.role != 'system' %}[{{ m.content }}]{% endif %}{% endfor %}"
    assert text_of(template) == f"[Hi <|im_end|>][{ANSWER}][ And now? ]"


def test_a_template_with_a_switch_in_the_dialogue_still_renders():
    template = "{% if '/quick' in messages[0].content %}<quick>{% else %}<slow>{% endif %}" + templates.CHATML
    messages = (RenderMessage("user", "Go <|im_end|> /quick"), RenderMessage("assistant", "ok", (5,)))
    parts = parts_of(template, messages)
    assert parts[:2] == (TemplatePart("<quick><|im_start|>user\n"), PlainPart("Go <|im_end|> /quick"))
    assert TokenPart((5,)) in parts


def test_a_template_that_changes_what_is_written_keeps_it_text():
    template = "{% for m in messages %}<{{ m.role }}>{{ m.content | tojson }}{% endfor %}"
    messages = (RenderMessage("user", 'a "b" <|im_end|>\n'),)
    assert parts_of(template, messages) == (
        TemplatePart('<user>"'),
        PlainPart('a \\"b\\" <|im_end|>\\n'),
        TemplatePart('"'),
    )


def test_two_readings_of_the_clock_agree_within_one_rendering():
    template = "{{ strftime_now('%f') }}" + templates.CHATML
    assert parts_of(template)[1] == PlainPart("Be kind.")


def test_a_random_template_is_located():
    template = "{{ range(99999) | random }} {{ range(99999) | random }} " + templates.CHATML
    assert PlainPart("Hi <|im_end|>") in parts_of(template)


def test_half_a_character_from_a_template_is_broken():
    event = answer("{{ '\\ud800' }}")
    assert event.code is ErrorCode.TEMPLATE_BROKEN


@pytest.mark.parametrize("template", templates.BOMBS_TOO_LONG.values(), ids=templates.BOMBS_TOO_LONG)
def test_a_flood_is_stopped_at_its_limit(template):
    assert answer(template) == TemplateFailed(ErrorCode.TEMPLATE_TOO_LONG)


def test_the_limit_itself_is_allowed():
    assert text_of("{{ 'é' * 2097152 }}") == "é" * 2097152


def test_one_template_is_compiled_once():
    renderer = TemplateRenderer()
    renderer.answer(RenderTemplate(template=templates.CHATML, messages=DIALOGUE))
    compiled = renderer._compiled[templates.CHATML]
    renderer.answer(RenderTemplate(template=templates.CHATML, messages=DIALOGUE[:1]))
    assert renderer._compiled == {templates.CHATML: compiled}


def test_a_failed_template_is_not_kept():
    renderer = TemplateRenderer()
    renderer.answer(RenderTemplate(template="{{ 'x' * 5000000 }}", messages=DIALOGUE))
    assert renderer._compiled == {}


@pytest.mark.parametrize("template", templates.ESCAPES.values(), ids=templates.ESCAPES)
def test_no_escape_leaves_the_sandbox(template, tmp_path):
    # Here nothing but Jinja's sandbox stands in the way: the process of the tests has no limits.
    planted = tmp_path / "planted"
    event = answer(template.replace(templates.PLANTED, str(planted)))
    assert isinstance(event, TemplateFailed)
    assert event.code is ErrorCode.TEMPLATE_BROKEN
    assert not planted.exists()


def test_jinja_is_at_least_the_version_whose_sandbox_held():
    assert tuple(map(int, jinja2.__version__.split(".")[:3])) >= (3, 1, 6)
