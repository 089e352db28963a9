import pytest
import torch

from backends.torch_engine import attention_hook
from tests.helpers.tiny_models import tiny_model

TOKENS = torch.tensor([[5, 6, 7]])


class Echo:
    def __init__(self):
        self.calls = []

    def answer(self, module, call):
        self.calls.append((module.layer_idx, call))
        return call.query.transpose(1, 2)


def hooked(architecture):
    attention_hook.register()
    model = tiny_model(architecture)
    model.set_attn_implementation(attention_hook.NAME)
    return model


def test_the_name_means_nothing_else_to_transformers():
    assert not any(word in attention_hook.NAME for word in ("sdpa", "flash", "flex_attention", "paged"))


def test_every_layer_asks_the_one_who_is_attached():
    model, echo = hooked("llama"), Echo()
    attention_hook.attach(model, echo)
    model(input_ids=TOKENS, use_cache=False)
    assert [layer for layer, _ in echo.calls] == [0, 1, 2]
    call = echo.calls[0][1]
    assert call.query.shape == (1, 4, 3, 8)
    assert call.key.shape == call.value.shape == (1, 2, 3, 8)
    assert call.scaling == pytest.approx(8**-0.5)


# stablelm and nemotron do not pass keyword arguments on, so nothing may depend on them
@pytest.mark.parametrize("architecture", ["stablelm", "nemotron"])
def test_models_that_drop_keyword_arguments_are_answered_too(architecture):
    model, echo = hooked(architecture), Echo()
    attention_hook.attach(model, echo)
    model(input_ids=TOKENS, use_cache=False)
    assert len(echo.calls) == 3


def test_two_models_have_two_answerers():
    first, second = hooked("llama"), hooked("llama")
    echoes = Echo(), Echo()
    attention_hook.attach(first, echoes[0])
    attention_hook.attach(second, echoes[1])
    first(input_ids=TOKENS, use_cache=False)
    assert [len(echo.calls) for echo in echoes] == [3, 0]


def test_a_model_that_nobody_answers_does_not_run():
    with pytest.raises(RuntimeError, match="nobody answers"):
        hooked("llama")(input_ids=TOKENS, use_cache=False)


def test_caps_windows_and_sinks_come_with_the_call():
    model, echo = hooked("gpt_oss"), Echo()
    attention_hook.attach(model, echo)
    model(input_ids=TOKENS, use_cache=False)
    call = echo.calls[0][1]
    assert call.window == 8
    assert call.sinks.shape == (4,)
