from multiprocessing.connection import Pipe

import pytest

from backends.errors import ErrorCode
from backends.protocol import PlainPart, RenderedPrompt, TemplatePart, TokenPart
from backends.renderer_messages import (
    RendererStarted,
    RenderMessage,
    RenderTemplate,
    TemplateFailed,
    TemplateRendered,
    client_end,
    renderer_end,
)
from backends.wire import MessageError


@pytest.fixture
def ends():
    ours, theirs = Pipe()
    with ours, theirs:
        yield client_end(ours), renderer_end(theirs)


def test_a_request_arrives_as_it_was_sent(ends):
    client, renderer = ends
    request = RenderTemplate(
        template="{{ 1 }}",
        messages=(RenderMessage("user", "héllo 🙂"), RenderMessage("assistant", "hi", (1, 2))),
        add_generation_prompt=False,
        bos_text="<s>",
        eos_text="</s>",
        extra={"enable_thinking": False, "date": None, "tools": [{"name": "clock"}]},
        limit_s=0.5,
    )
    client.send(request)
    assert renderer.receive() == request


@pytest.mark.parametrize(
    "event",
    [
        RendererStarted(),
        TemplateRendered(RenderedPrompt((TemplatePart("<s>"), PlainPart("hi"), TokenPart((5, 6))))),
        TemplateFailed(ErrorCode.TEMPLATE_BROKEN, "no such filter", 3),
        TemplateFailed(ErrorCode.TEMPLATE_TOO_LONG),
    ],
)
def test_an_answer_arrives_as_it_was_sent(ends, event):
    client, renderer = ends
    renderer.send(event)
    assert client.receive() == event


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x81\xa4type\xa5Hello", b"\x81\xa4type\xaeTemplateFailed"])
def test_what_is_no_answer_is_refused(ends, data):
    client, renderer = ends
    renderer._connection.send_bytes(data)
    with pytest.raises(MessageError):
        client.receive()


def test_an_answer_with_an_unknown_code_is_refused(ends):
    client, _ = ends
    with pytest.raises(MessageError):
        client.decode(b"\x82\xa4type\xaeTemplateFailed\xa4code\xa4what")
