"""A corpus of chat templates: honest ones in the style of the great model families, escapes and bombs.

All written for these tests. An escape that worked would create the file named by PLANTED; a bomb that worked would
never end, fill the memory or flood the pipe.
"""

from __future__ import annotations

import random

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

LLAMA_2 = """\
{%- if messages[0]['role'] == 'system' -%}
    {%- set opening = '<<SYS>>\\n' + messages[0]['content'] + '\\n<</SYS>>\\n\\n' -%}
    {%- set turns = messages[1:] -%}
{%- else -%}
    {%- set opening = '' -%}
    {%- set turns = messages -%}
{%- endif -%}
{%- for turn in turns -%}
    {%- if (turn['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{- raise_exception('The roles must take turns: user, assistant, user, ...') -}}
    {%- endif -%}
    {%- if turn['role'] == 'user' -%}
        {{- bos_token + '[INST] ' + (opening if loop.first else '') + turn['content'] | trim + ' [/INST]' -}}
    {%- else -%}
        {{- ' ' + turn['content'] | trim + ' ' + eos_token -}}
    {%- endif -%}
{%- endfor -%}
"""

LLAMA_3 = """\
{{- bos_token }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}
    {{- message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

GEMMA = """\
{{ bos_token }}
{%- if messages[0]['role'] == 'system' %}{{ raise_exception('There is no system role') }}{% endif %}
{%- for message in messages %}
{{- '<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\\n' }}
{{- message['content'] | trim + '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}
"""

MISTRAL = """\
{{- bos_token }}
{%- set state = namespace(system='') %}
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {%- set state.system = message.content + '\\n\\n' %}
        {%- continue %}
    {%- endif %}
    {%- if message.role == 'user' %}
        {{- '[INST] ' + (state.system if loop.last else '') + message.content + '[/INST]' }}
    {%- elif message.role == 'assistant' %}
        {% generation %}{{- ' ' + message.content + eos_token }}{% endgeneration %}
    {%- else %}
        {{- raise_exception('Only user, assistant and system are known') }}
    {%- endif %}
{%- endfor %}
"""

# Thinking of turns before the last question is left out; of later ones it is written anew.
QWEN_3 = """\
{%- set mark = namespace(last=-1) %}
{%- for message in messages %}
    {%- if message.role == 'user' %}{%- set mark.last = loop.index0 %}{%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role != 'assistant' %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- else %}
        {%- set answer = message.content %}
        {%- set thought = '' %}
        {%- if '</think>' in message.content %}
            {%- set answer = message.content.split('</think>')[-1].lstrip('\\n') %}
            {%- set thought = message.content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if loop.index0 > mark.last %}{{- '<think>\\n' + thought + '\\n</think>\\n\\n' }}{%- endif %}
        {{- answer + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and not enable_thinking %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}
"""

DEEPSEEK = (
    "{% set ns = namespace(system='') %}"
    "{%- for m in messages %}{%- if m['role'] == 'system' %}{% set ns.system = m['content'] %}{%- endif %}{%- endfor %}"
    "{{ bos_token }}{{ ns.system }}"
    "{%- for m in messages %}"
    "{%- if m['role'] == 'user' %}{{ '<｜User｜>' + m['content'] }}{%- endif %}"
    "{%- if m['role'] == 'assistant' %}{% set content = m['content'] %}"
    "{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}"
    "{{ '<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>' }}{%- endif %}"
    "{%- endfor -%}"
    "{% if add_generation_prompt %}{{ '<｜Assistant｜><think>\\n' }}{% endif %}"
)

ZEPHYR = """\
{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n' + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}
"""

HONEST = {
    "chatml": CHATML,
    "llama-2": LLAMA_2,
    "llama-3": LLAMA_3,
    "gemma": GEMMA,
    "mistral": MISTRAL,
    "qwen-3": QWEN_3,
    "deepseek": DEEPSEEK,
    "zephyr": ZEPHYR,
}

PLANTED = "@PLANTED@"

ESCAPES = {
    "classes of a string": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "module behind cycler": "{{ cycler.__init__.__globals__.os.system('touch @PLANTED@') }}",
    "module behind lipsum": "{{ lipsum.__globals__['os'].popen('touch @PLANTED@').read() }}",
    "builtins behind self": "{{ self.__init__.__globals__.__builtins__.open('@PLANTED@', 'w') }}",
    "builtins behind joiner": "{{ joiner.__init__.__globals__['__builtins__'].eval('open(\"@PLANTED@\", \"w\")') }}",
    "builtins behind namespace": "{% set n = namespace() %}{{ n.__init__.__globals__.__builtins__.exec('1') }}",
    "globals of our function": "{{ raise_exception.__globals__['sys'].modules['os'].system('touch @PLANTED@') }}",
    "owner of our method": "{{ strftime_now.__self__._jinja.globals }}",
    "function of our method": "{{ strftime_now.__func__.__globals__ }}",
    "attr filter": "{{ (messages | attr('__class__')).__base__.__subclasses__() }}",
    "format of a string": "{{ '{0.__class__.__mro__}'.format(messages) }}",
    "format by attr filter": "{{ ('{0.__globals__[sys].modules}' | attr('format'))(raise_exception) }}",
    "format kept for later": "{% set f = '{0.__globals__[sys]}'.format %}{{ f(raise_exception) }}",
    "format_map kept for later": "{% set f = '{a.__globals__[sys]}'.format_map %}{{ f({'a': raise_exception}) }}",
    "format through map": "{{ ['{0.__globals__}'] | map('attr', 'format') | map('string') | list }}"
    "{{ (['{0.__globals__[sys]}'] | map('attr', 'format') | first)(raise_exception) }}",
    "attribute of map": "{{ [raise_exception] | map(attribute='__globals__.sys.modules.os') | list }}",
    "frame of a generator": "{{ (messages | map('string')).gi_frame.f_back.f_globals }}",
    "code of a macro": "{% macro m() %}{% endmacro %}{{ m._func.__globals__['__builtins__'] }}",
    "mro of a type": "{{ dict.mro()[-1].__subclasses__() }}",
    "joined dunder": "{{ ''['__cla' ~ 'ss__'] }}",
    "unicode dunder": "{{ ''['\\x5f\\x5fclass\\x5f\\x5f'].mro() }}",
    "environment of a filter": "{{ self._TemplateReference__context.environment.globals }}",
    "another file": "{% include '/etc/passwd' %}",
    "another module": "{% import 'os' as os %}{{ os.system('touch @PLANTED@') }}",
    "a base template": "{% extends '/etc/passwd' %}",
    "changed messages": "{{ messages.append({'role': 'system', 'content': 'obey'}) }}",
    "changed message": "{{ messages[0].update({'content': 'obey'}) }}",
    "statement that runs code": "{% do messages.clear() %}",
}

# By the code that the client must give for them.
BOMBS_TOO_SLOW = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "sums": "{% for a in range(99999) %}{% set b = range(99999) | sum %}{% endfor %}",
    "power": "{{ 9 ** (9 ** 9) % 7 }}",
    "words": "{{ lipsum(n=99999) | length }}",
    "macros": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
}
BOMBS_TOO_LONG = {
    "many words": "{% for a in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
    "one word": "{{ 'x' * 4194305 }}",
    "wide characters": "{{ 'é' * 2097153 }}",
}
BOMBS_BROKEN = {
    "string": "{{ 'a' * 1500000000 }}",
    "list": "{{ [0] * 300000000 }}",
    "doubling": "{% set n = namespace(s='ab') %}{% for a in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}{{ n.s }}",
    "width": "{{ '%999999999d' % 1 }}",
    "padding": "{{ 'x' | center(999999999) }}",
    "range": "{{ range(10 ** 9) | list }}",
    "recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "brackets": "{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}",
    "nesting": "{% for a in [1] %}" * 60 + "{% endfor %}" * 60,
    "signs": "{{ " + "-" * 20_000 + "1 }}",
}

_SNIPPETS = (
    "{%",
    "%}",
    "{{",
    "}}",
    "{#",
    "-%}",
    "{% endfor %}",
    "{% endif %}",
    "{% for a in range(99999) %}",
    "{{ messages }}",
    "{{ raise_exception(messages) }}",
    " * 9999",
    " ** 999999",
    "'",
    "\\",
    "\0",
    "｜",
    "|upper",
    "|tojson",
    ".content",
    "[0]",
    "[1:]",
    "~",
    "not ",
)


def mutated(generator: random.Random) -> str:
    """Return an honest template with one to four pieces deleted, doubled, swapped or planted."""
    text = generator.choice(sorted(HONEST.values()))
    for _ in range(generator.randint(1, 4)):
        start = generator.randrange(len(text))
        end = min(len(text), start + generator.randint(1, 40))
        kind = generator.randrange(5)
        if kind == 0:
            text = text[:start] + text[end:]
        elif kind == 1:
            text = text[:end] + text[start:]
        elif kind == 2:
            text = text[:start] + generator.choice(_SNIPPETS) + text[start:]
        elif kind == 3:
            other = generator.choice(sorted(HONEST.values()))
            text = text[:start] + other[start:end] + text[end:]
        else:
            text = text[:start] + text[start:end][::-1] + text[end:]
        text = text or "x"
    return text
