"""What an agent writes, as calls: both syntaxes, what models wrap around them, and what is refused with a reason."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envtuning.worlds.bfcl.calls import MAX_CALLS, Call, CallError, Calls, EndOfTurn, Unreadable, read_action, read_call

CD = Call("cd", (), {"folder": "docs"})
TOO_DEEP = Unreadable("brackets are nested too deeply: at most 60")

literals = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    "text",
    [
        "[cd(folder='docs')]",
        "cd(folder='docs')",
        "GorillaFileSystem.cd(folder='docs')",
        "```python\n[cd(folder='docs')]\n```",
        '{"name": "cd", "arguments": {"folder": "docs"}}',
        '[{"name": "cd", "arguments": {"folder": "docs"}}]',
        '[{"function": "cd", "parameters": {"folder": "docs"}}]',
        '{"type": "function", "function": {"name": "cd", "arguments": "{\\"folder\\": \\"docs\\"}"}}',
        '<tool_call>\n{"name": "cd", "arguments": {"folder": "docs"}}\n</tool_call>',
        "<think>first the folder [ls()]</think>[cd(folder='docs')]",
        "<TOOLCALL>[cd(folder='docs')]</TOOLCALL>",
        "first the folder\n</think>\n\n[cd(folder='docs')]",  # a thought that the prompt opened
        "```python\r\n[cd(folder='docs')]\r\n```",
    ],
)
def test_one_call_in_every_form(text):
    assert read_action(text) == Calls((CD,))


def test_lists_keep_their_order_and_positional_arguments_stay():
    assert read_action("[cd(folder='docs'), sort('a.txt')]") == Calls((CD, Call("sort", ("a.txt",))))
    two = '<tool_call>{"name": "ls"}</tool_call><tool_call>{"name": "pwd"}</tool_call>'
    assert read_action(two) == Calls((Call("ls"), Call("pwd")))


@pytest.mark.parametrize(
    "text", ["All done.", "", "[]", "[ ]", "{ }", "Which file do you mean?", "Done (both files moved)."]
)
def test_words_end_the_turn(text):
    assert isinstance(read_action(text), EndOfTurn)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[cd(folder='docs'", "cannot be read"),
        ("[cd(folder=docs)]", "no literal"),
        ("[cd(folder=open('x'))]", "no literal"),
        ("[cd(folder={1, 2})]", "type set"),
        ("[cd(**{'folder': 'x'})]", "name each argument"),
        ("[cd(folder='a', folder='b')]", "twice"),
        ("[cd(folder={b'a': 1})]", "type bytes"),
        ("[cd(folder={'a': b'x'})]", "type bytes"),
        ("[cd(folder=['a', b'x'])]", "type bytes"),
        ("[cd(b'x')]", "type bytes"),
        ("[ls()()]", "not the name of a tool"),
        ("[ls().cd(folder='x')]", "not the name of a tool"),
        ('{"error": "I cannot"}', "names no tool"),
        ('[{"name": "cd", "arguments": [1]}]', "not an object"),
        ("[" * 100, "cannot be read"),
        ('{"name": "cd", "arguments": {"folder": ' + "[" * 5_000 + "]" * 5_000 + "}}", "nested"),
        ('{"name": "cd", "arguments": {"folder": ' + '["]",' * 600 + "[]" + "]" * 600 + "}}", "nested"),
        ("[cd(folder={0x" + "f" * 5_000 + "})]", "type set"),
        ("x" * 30_000, "characters"),
        ("[ls()" + ", ls()" * MAX_CALLS + "]", "at most"),
        ("[add(a=" + "9" * 4_100 + ")]", "digits"),
        ("<tool_call>[ls(), ls()]</tool_call>" * (MAX_CALLS // 2 + 1), "at most"),
        ("[add(a=1e999, b=1)]", "not finite"),
        ("[add([-1e999])]", "not finite"),
        ('{"name": "add", "arguments": {"a": NaN}}', "not finite"),
        ('{"name": "add", "arguments": "{\\"a\\": Infinity}"}', "not finite"),
        ('{"name": "cd", "arguments": {"folder": "caf\\ud83d"}}', "surrogate"),
        (r"[cd(folder='caf\ud83d')]", "surrogate"),
    ],
)
def test_what_is_meant_as_calls_and_cannot_be_read_says_why(text, reason):
    action = read_action(text)
    assert isinstance(action, Unreadable)
    assert reason in action.reason


def test_as_many_calls_and_digits_as_are_allowed_are_read():
    assert len(read_action("[ls()" + ", ls()" * (MAX_CALLS - 1) + "]").calls) == MAX_CALLS
    assert read_action("[add(a=" + "9" * 4_000 + ")]").calls[0].named == {"a": 10**4_000 - 1}
    for form in ("[add(a={})]", '[{{"name": "add", "arguments": {{"a": [{}]}}}}]'):
        assert read_action(form.format(10**4_010)) == Unreadable(
            "a number of more than 4,000 digits: write a shorter one"
        )


def test_texts_with_escapes_that_python_warns_of_are_read_as_they_are():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_action(r"[grep(pattern='\d')]") == Calls((Call("grep", (), {"pattern": r"\d"}),))


@given(st.text(max_size=200))
def test_any_text_is_read_without_raising_or_warning(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_action(text)


@given(st.dictionaries(st.from_regex(r"\A[a-z_]{1,8}\Z").filter(str.isidentifier), literals, max_size=3))
def test_a_printed_call_reads_as_itself(named):
    import keyword

    call = Call("tool", ("x",), {name: value for name, value in named.items() if not keyword.iskeyword(name)})
    assert read_call(str(call)) == call


def test_the_bounds_on_an_action_are_met_exactly():
    assert isinstance(read_action("x" * 20_000), EndOfTurn)
    assert read_action("x" * 20_001) == Unreadable("the action has 20,001 characters: write at most 20,000")
    assert read_action(5) == Unreadable("an action is a text, not int")
    for form, around in (("f(a={})", 0), ('{{"name": "f", "arguments": {{"a": {}}}}}', 2)):
        deep = 60 - around
        assert isinstance(read_action(form.format("[" * deep + "]" * deep)), Calls), form
        assert read_action(form.format("[" * (deep + 1) + "]" * (deep + 1))) == TOO_DEEP
    assert isinstance(read_action(f"f(a=[{', '.join(['[]'] * 100)}])"), Calls)  # many, and not deep
    assert read_action(f"f(a=[{'[], ' * 9}{'[' * 60}{']' * 60}])") == TOO_DEEP
    assert isinstance(read_action(f"f(a='{'[' * 100}')"), Calls)  # in a text
    assert "at most 100" in read_action(f"[{', '.join(['f()'] * 101)}]").reason


def test_arguments_that_are_written_as_a_text_are_read_and_bounded_too():
    assert read_action('{"name": "f", "arguments": "{\\"a\\": 1}"}') == Calls((Call("f", (), {"a": 1}),))
    assert read_action('{"name": "f", "args": {"a": 1}}') == Calls((Call("f", (), {"a": 1}),))
    # Brackets that only show once the text is read.
    hidden = '"{\\"a\\": ' + "\\u005b" * 60 + "\\u005d" * 60 + '}"'
    for arguments, said in (
        ('"x"', "a text that is not JSON"),
        (hidden, "nested too deeply"),
        ("5", "are int, not an object"),
    ):
        assert said in read_action(f'{{"name": "f", "arguments": {arguments}}}').reason
    assert "names no tool" in read_action('{"name": "not a name"}').reason
    assert "5 is not a call" in read_action('[{"name": "f"}, 5]').reason
    with pytest.raises(CallError, match="holds 2 calls, not one"):
        read_call("[f(), g()]")


def test_a_call_is_printed_as_the_benchmark_writes_it():
    call = Call("f", (1, "x"), {"a": None, "b": ["y"]})
    assert str(call) == "f(1, 'x', a=None, b=['y'])"
    assert read_call(str(call)) == read_call(f"[{call}]") == call


@pytest.mark.parametrize(
    "name", ["folder=open('x')) or cd(folder", "import", "x y", "", "1", "caf\\ud83d", "\\uff46older", "x=1, y"]
)
def test_names_in_json_are_names_and_nothing_else_because_a_printed_call_is_code_to_the_official_executor(name):
    argument = read_action(f'{{"name": "cd", "arguments": {{"{name}": "x"}}}}')
    tool = read_action(f'{{"name": "{name}", "arguments": {{}}}}')
    assert isinstance(argument, Unreadable)
    assert isinstance(tool, Unreadable)
    if "ud83d" not in name:
        assert "names no argument of cd: write letters" in argument.reason
        assert "names no tool" in tool.reason
    argument.reason.encode()


def test_positional_arguments_are_named_as_far_as_there_are_names():
    assert Call("f", (1, 2, 3), {"c": 4}).with_named(["a", "b"]) == Call("f", (3,), {"a": 1, "b": 2, "c": 4})
    assert Call("f", (1,), {"a": 2}).with_named(["a"]) == Call("f", (), {"a": 2})


def test_the_first_text_in_tags_that_holds_no_calls_counts_for_all():
    two = "<tool_call>[f()]</tool_call><tool_call>{}</tool_call><tool_call>[g()]</tool_call>"
    assert isinstance(read_action(two.format("[f(")), Unreadable)
    assert read_action(two.format("[]")) == EndOfTurn("")
    assert read_action("<tool_call>[f()]") == Calls((Call("f"),))
    assert read_action('[ {"name": "f"} ]') == Calls((Call("f"),))
