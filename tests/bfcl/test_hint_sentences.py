"""What each rule says about a call, word for word, on tools of a few lines; what it keeps silent about; which tools it names."""

import pytest

from envtuning.worlds.bfcl.calls import Call
from envtuning.worlds.bfcl.config import BFCLConfig
from envtuning.worlds.bfcl.events import CallEvent
from envtuning.worlds.bfcl.hints import augment
from envtuning.worlds.bfcl.hints.producers import makers, near_in_words, producers, similar_tools, takers
from envtuning.worlds.bfcl.hints.rules import MAX_HINT

TEXT, NUMBER = {"type": "string"}, {"type": "float"}
ID = {"type": "integer"}
ASK = "if the user has not said it, ask."


def tool(name, needed=(), gives=(), **takes):
    schemas = {"properties": takes, "required": list(needed)}
    return {"name": name, "parameters": schemas, "response": {"properties": {key: {} for key in gives}}}


def named(*names):
    return [tool(name) for name in names]


FILES = [
    tool("cd", ["folder"], folder=TEXT),
    tool("ls"),
    tool("mkdir", ["dir_name"], dir_name=TEXT),
    tool("rmdir", ["dir_name"], dir_name=TEXT),
    tool("touch", ["file_name"], file_name=TEXT),
    tool("cp", ["source", "destination"], source=TEXT, destination=TEXT),
    tool("cat", ["file_name"], file_name=TEXT),
    tool("tail", ["file_name"], file_name=TEXT, lines=ID),
]
ORDERS = [
    tool("cancel_order", ["order_id"], order_id=ID),
    tool("place_order", ["symbol"], ["order_id", "status"], symbol=TEXT, amount=NUMBER),
    tool("get_order_history", [], ["order_id"]),
    tool("trading_login", ["username"], username=TEXT),
    tool("get_order_status", ["order_id"], order_id=ID),
]
WALK = tool(
    "walk",
    ["way"],
    way={"type": "string", "description": "[Enum]: ['north', 'south']"},
    steps=ID,
    speed=NUMBER,
    backwards={"type": "boolean"},
    stops={"type": "array", "description": "Options are: inn, well"},
    extras={"type": "dict"},
    day={"type": "string", "description": "The day, as 'YYYY-MM-DD'"},
    moment={"type": "string", "description": "The moment, as 'YYYY-MM-DD HH:MM'"},
    untyped={},
)


def hint(call, tools, result="Error: failed", *, error=True):
    document = next((one for one in tools if one["name"] == call.name), None)
    return augment(CallEvent(str(call), result, error, call, document, tools, ()))


def call(name, *positional, **arguments):
    return Call(name, positional, arguments)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (call("cdTool"), "There is no tool cdTool; did you mean cd? If none is what you need, ask the user for it."),
        (call("look", far=True), "No tool of this name is offered, and none takes these arguments: tell the user what is missing and ask."),
        (call("cp"), f"source, destination are missing: give them; {ASK}"),
        (call("cp", "a.txt"), f"destination is missing: give it; {ASK}"),
        (call("cd", folder="docs", deep=1, all=2), "Leave out or rename deep, all: cd takes folder."),
        (call("ls", all=True), "Leave out or rename all: ls takes no arguments."),
        (call("ls", folder="docs"), "Leave out or rename folder: ls takes no arguments; cd takes these arguments."),
        (call("cd", dir_name="docs"), f"folder is missing: give it; {ASK} Leave out or rename dir_name: cd takes folder; mkdir or rmdir takes these arguments."),
        (call("cd", folder=5), "folder must be a text."),
        (call("cp", source="x/a.txt", destination="y/b"), "source, destination must be a name in the current directory, not a path: cd there first."),
        (call("cp", source="/a.txt", destination="docs/"), "Check source, destination: the right directory is reached with cd, what is not there yet is made with touch."),
        (call("cat", file_name="a.txt"), "Check file_name: the right directory is reached with cd, what is not there yet is made with touch or cp."),
        (call("touch", file_name="a.txt"), "Check file_name: the right directory is reached with cd, what is not there yet is made with cp."),
        (call("cd", folder="x/y"), "Check folder: the right directory is reached with cd, what is not there yet is made with mkdir."),
        (call("rmdir", dir_name="x"), "Check dir_name: the right directory is reached with cd, what is not there yet is made with mkdir."),
        (call("mkdir", dir_name="x"), "Check dir_name: the right directory is reached with cd, what is not there yet is made with touch or cp."),
        (call("cp", "a.txt", "docs"), "Check source, destination: the right directory is reached with cd, what is not there yet is made with touch."),
        (call("ls"), None),
    ],
)  # fmt: skip
def test_each_rule_s_words(written, said):
    found = hint(written, FILES)
    if said is not None and said.startswith(("Check", "folder is missing")):
        assert found.startswith(said)
    else:
        assert found == said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"way": "North"}, "way must be one of north, south."),
        ({"way": 3}, "way must be a text."),
        ({"way": True}, "way must be a text."),
        ({"steps": 1.5}, "steps must be a whole number."),
        ({"steps": True}, "steps must be a whole number."),
        ({"speed": "ten"}, "speed must be a number."),
        ({"speed": False}, "speed must be a number."),
        ({"backwards": 1}, "backwards must be True or False."),
        ({"stops": "inn"}, "stops must be a list."),
        ({"stops": ["inn", "house"]}, "stops must be one of inn, well."),
        ({"extras": ["rope"]}, "extras must be a dict."),
        ({"day": "2024-5-1"}, "day must be a date like 2024-05-31."),
        ({"day": 20240501}, "day must be a text."),
    ],
)
def test_a_value_that_its_document_does_not_allow_is_named_with_what_it_wants_even_where_the_tool_reports_nothing(
    arguments, said
):
    written = call("walk", **({"way": "north"} | arguments))
    for error in (True, False):
        found = hint(written, [WALK], "fine", error=error)
        places = "" if "way" in arguments else " If values have changed places, check way too."
        assert found == said + places


def test_what_its_document_allows_draws_no_word():
    arguments = {"way": "south", "steps": 3, "speed": 4, "backwards": True, "stops": ["inn", 5], "extras": {}, "day": "2024-05-01"}  # fmt: skip
    for more in (
        {"moment": "soon"},
        {"untyped": True},
        {"speed": 4.5},
        {"day": None},
        {"stops": ("inn",)},
        {"steps": None},
    ):
        assert hint(call("walk", **(arguments | more)), [WALK], "fine", error=False) is None, more
    assert hint(call("walk", "south", 3), [WALK], "fine", error=False) is None
    assert hint(call("cd", folder="docs"), FILES, '{"current_directory": "docs"}', error=False) is None
    assert hint(call("look"), FILES, "ran all the same", error=False) is None  # held back, and run as officially
    assert hint(call("cat", file_name="a"), [FILES[0], FILES[6]]).startswith(
        "Check file_name: the right directory is reached with cd. "
    )
    paths = call("cat", file_name="x/a.txt")
    assert "cd" not in hint(paths, [one for one in FILES if one["name"] != "cd"])


def test_values_that_may_have_changed_places_are_named_until_there_are_three():
    right = {"way": "north", "steps": 1, "speed": 1.0, "backwards": True}
    wrong = {"way": 1, "steps": "x", "speed": "x", "backwards": "x"}
    for number, also in ((1, "steps, speed"), (2, "speed"), (3, ""), (4, "")):
        found = hint(call("walk", **(right | dict(list(wrong.items())[:number]))), [WALK])
        assert found.count(" must be ") == number
        assert found.partition(" If values have changed places, check ")[2] == (f"{also} too." if also else "")
    five = {"day": "2024-05-01", "moment": "soon"} | right
    assert "check" not in hint(call("walk", **(five | wrong)), [WALK])


def test_positional_arguments_are_checked_by_their_place():
    assert hint(call("walk", "north", "far"), [WALK]).startswith("steps must be a whole number.")


@pytest.mark.parametrize(
    ("written", "result", "said"),
    [
        (call("cancel_order", order_id=1), "Error: not found", "The ids may be wrong: order_id: place_order or get_order_history tells it. Check order_id against what the user said."),
        (call("cancel_order", order_id=1), "Error: must wait", "The ids may be wrong: order_id: place_order or get_order_history tells it. Check order_id against what the user said."),
        (call("cancel_order", order_id=1), "Error: please log in", "First call trading_login. The ids may be wrong: order_id: place_order or get_order_history tells it."),
        (call("place_order", symbol="AAPL"), "Error: no order", "The ids may be wrong: check symbol. Check symbol against what the user said."),
        (call("place_order", symbol="AAPL"), '{"success": false}', "The ids may be wrong: check symbol. Check symbol against what the user said."),
        (call("place_order", symbol="AAPL"), '{"order_status": false}', "The ids may be wrong: check symbol. Check symbol against what the user said."),
        (call("trading_login", username="anna"), "Error: no order", "It may not have been made yet, by place_order. Check username against what the user said."),
        (call("get_order_status", order_id=1), '{"status": false}', None),
        (call("place_order", symbol="AAPL"), '{"success": true}', None),
    ],
)  # fmt: skip
def test_what_a_result_complains_of_leads_to_at_most_two_pointers(written, result, said):
    assert hint(written, ORDERS, result, error=result.startswith("Error")) == said


def test_the_arguments_that_a_message_quotes_are_suspected_first_and_at_most_three_are_named():
    free = tool("t", a=TEXT, b=TEXT, c=ID, d=TEXT)
    written = call("t", a="x", b="yes", c=12, d="no")
    assert hint(written, [free], "x no 12") == "Check c, d, a against what the user said."
    assert hint(written, [free], "something") == "Check a, b, c against what the user said."
    ids = tool("t", **dict.fromkeys(("a_id", "b_id", "c_id", "d_id"), ID))
    found = hint(call("t", a_id=1, b_id=2, c_id=3, d_id=4), [ids], "x")
    assert found.startswith("The ids may be wrong: check a_id; check b_id; check c_id. ")


def test_a_hint_is_as_long_as_a_config_allows_one_to_be_and_no_longer():
    many = tool("t", **{f"name_{number}": TEXT for number in range(100)})
    assert len(hint(call("t", other=1), [many])) == MAX_HINT
    BFCLConfig(hints={"cd: {}": "x" * MAX_HINT})
    with pytest.raises(ValueError, match="at most"):
        BFCLConfig(hints={"cd: {}": "x" * (MAX_HINT + 1)})


@pytest.mark.parametrize(
    ("wanted", "offered", "likely"),
    [
        ("find_it", ["find_file", "find", "fin"], ["find", "fin"]),
        ("zoom_in", ["zoo", "Zoom", "zoomi"], ["zoomi", "Zoom"]),
        ("zoomit", ["zoo", "Zoom"], ["Zoom", "zoo"]),
        ("cd_tool", ["cd"], ["cd"]),
        ("cd_tools", ["cd"], []),
        ("chdir", ["mkdir", "rmdir"], []),
        ("getOrders", ["get_order", "get_orders", "get_border"], ["get_orders", "get_order"]),
        ("find_files", ["find_file", "find", "fin"], ["find_file"]),
    ],
)
def test_a_tool_that_is_not_there_may_have_meant_the_ones_whose_names_it_begins_with_or_is_like(
    wanted, offered, likely
):
    assert similar_tools(Call(wanted), named(*offered)) == likely


def test_who_takes_these_arguments_takes_all_of_them_and_needs_no_more():
    tools = [
        tool("needs_more", ["a", "b"], a=TEXT, b=TEXT),
        tool("takes_less"),
        tool("one", ["a"], a=TEXT),
        tool("two", [], a=TEXT, b=TEXT),
        tool("three", [], a=TEXT),
    ]
    assert takers(call("t", a="x"), tools) == ["one", "two"]
    assert similar_tools(call("t", a="x"), tools) == ["one", "two"]
    assert takers(call("t", c="x"), tools) == []
    assert takers(call("t"), tools) == []


def test_an_id_is_told_by_those_who_return_it_then_by_those_named_after_it():
    tools = [
        tool("zz_booking", gives=["name"]),
        tool("book", ["booking_id"], ["booking_id"]),
        tool("flight", gives=["booking_id"]),
        tool("asker", gives=["booking_id"]),
        tool("aa", gives=["all_bookings", "x"]),
        tool("unrelated"),
    ]
    assert producers("booking_id", tools, "asker") == ["flight", "zz_booking"]
    assert producers("booking_id", tools, "flight") == ["asker", "zz_booking"]
    assert producers("booking_id", [tools[4], tools[0]], "x") == ["zz_booking"]
    assert producers("id", tools, "x") == []  # every tool would do
    assert producers("hotel_booking_id", tools, "x") == []
    assert producers("booking_id", [{"name": "booking", "parameters": {"properties": {}}}], "x") == ["booking"]


def test_what_was_not_found_is_made_by_tools_named_so():
    tools = named("post_tweet", "get_tweet", "create_ticket", "send_tweet", "add_tweet")
    assert makers("Tweet 5 not found", tools) == ["post_tweet", "send_tweet"]
    assert makers("Ticket 5 not found", tools) == ["create_ticket"]
    assert makers("Not found", tools) == []


@pytest.mark.parametrize(
    ("message", "offered", "near"),
    [
        ("lock the doors first", ["open_door", "lock_doors", "close"], ["lock_doors"]),  # two words against one
        ("lock the doors or a window first", ["lock_window_door", "lock_doors", "door"], ["lock_window_door", "lock_doors"]),
        ("the door and lock of the window", ["lock_doors", "lock_window_door"], ["lock_window_door", "lock_doors"]),
        ("the brakes", ["press_brake_a", "b_brake", "c_brake", "d_brake"], ["press_brake_a", "b_brake", "c_brake"]),
        ("get the list", ["get_list", "list_all"], []),  # words that say nothing
        ("unknown", ["lock"], []),
        ("user anna has none", ["anna"], []),  # the call's own words
        ("please log in", ["a_login", "login_status", "message_login", "authenticate_c", "lock", "login_d"], ["a_login", "message_login", "authenticate_c"]),
        ("not authenticated", ["lock", "authenticate"], ["authenticate"]),
        ("login needed", ["needed", "login"], ["login"]),
        ("the token expired", ["token", "login"], ["login"]),
        ("using gas", ["gas_use", "using"], ["gas_use", "using"]),
        ("the gas", ["ga"], []),
        ("buying beds", ["buy_bed", "bed"], ["buy_bed"]),
    ],
)  # fmt: skip
def test_a_message_is_near_to_the_tools_that_share_most_of_its_words(message, offered, near):
    assert near_in_words(message, call("asker", who="anna"), named("asker", *offered)) == near


def test_the_tool_that_complains_is_not_named_itself():
    assert near_in_words("lock first", call("lock"), named("lock")) == []


def test_what_is_there_already_is_not_to_be_made_and_what_is_not_empty_is_to_be_emptied():
    exists = hint(call("touch", "a.txt"), FILES, "Error: a.txt: File exists")
    assert exists.startswith("It is there already: go on with it, or check file_name.")
    full = hint(call("rmdir", "docs"), FILES, "Error: 'docs': Directory not empty")
    assert full.startswith("Empty dir_name first: what is in it shows ls after a cd.")
    assert "mkdir" not in exists + full


def test_where_logging_in_gives_out_nothing_the_document_says_what_to_look_for():
    travel = [
        tool("book", ["travel_from"], travel_from=TEXT | {"description": "Code of the airport"}),
        tool("authenticate_travel", [], ["token"]),
        tool("get_nearest_airport", [], ["nearest"]),
    ]
    said = hint(call("book", travel_from="here"), travel, "Error: no route")
    assert said.startswith("The ids may be wrong: travel_from: get_nearest_airport tells it.")
    assert producers("token", travel, "book") == ["authenticate_travel"]


def test_whoever_cancels_makes_nothing():
    assert makers("no such booking", named("cancel_booking", "book_flight")) == ["book_flight"]
