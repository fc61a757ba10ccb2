"""The calls that fail in the Environment Tuning paper's own case studies (its appendix G.1 to G.3).

Our hints point where the paper's messages point; where a study has the tool's own message alone, at the argument or the tool at fault.
"""

import pytest

from envtuning.worlds.bfcl.episode import Conversation
from envtuning.worlds.bfcl.hints import augment
from envtuning.worlds.bfcl.tasks import load_tasks


@pytest.mark.parametrize(
    ("needs", "reply", "named"),
    [
        ({"rm"}, "rm(file_name='')", {"file_name"}),
        ({"rmdir"}, "rmdir(dir_name='document')", {"dir_name", " ls "}),  # which is not empty
        ({"rm"}, "rm(file_name='SuperResearch/SuperResearch/findings_report')", {"file_name", "cd"}),
        ({"grep"}, "grep(file_name='ResearchDocs/ResearchDocs/draft_notes.txt', pattern='draft')", {"file_name", "cd"}),
        ({"cp", "cd"}, "cp(source='summary_draft.docx', destination='ultimate_draft.docx')", {"source", "cd"}),
        (
            {"mv", "cd"},
            "mv(source='ultimate_draft.docx', destination='ultimate_draft.docx')",
            {"source", "destination", "cd"},
        ),
        (
            {"get_flight_cost", "get_nearest_airport_by_city"},
            "get_flight_cost(travel_from='Rivermist', travel_to='LAX', travel_date='2024-11-15', travel_class='business')",
            {"travel_from", "get_nearest_airport_by_city"},
        ),
        (
            {"get_flight_cost", "get_nearest_airport_by_city"},
            "get_flight_cost(travel_from='CRH', travel_to='Pinehaven', travel_date='2024-03-03', travel_class='business')",
            {"travel_to", "get_nearest_airport_by_city"},
        ),
        (
            {"estimate_distance", "get_zipcode_based_on_city"},
            "estimate_distance(cityA='San Francisco', cityB='Stonebrook')",
            {"cityA", "cityB", "get_zipcode_based_on_city"},
        ),
        (
            {"estimate_distance", "get_zipcode_based_on_city"},
            "estimate_distance(cityA='Rivermist', cityB='San Francisco')",
            {"cityA", "cityB", "get_zipcode_based_on_city"},
        ),
        (
            {"estimate_drive_feasibility_by_mileage"},
            "estimate_drive_feasibility_by_mileage(distance='$distance')",
            {"distance must be a number"},
        ),
        ({"fillFuelTank"}, "fillFuelTank(fuelAmount=50)", {"fuelAmount"}),
        ({"startEngine"}, "startEngine(ignitionMode='START')", {"pressBrakePedal"}),
        ({"post_tweet"}, "post_tweet(content='Just booked a flight.', username='michael_t')", {"username", "content"}),
    ],
)
def test_a_failed_call_of_the_paper_s_is_pointed_at(v4, needs, reply, named):
    task = next(task for task in load_tasks(v4, "base") if needs <= {tool["name"] for tool in task.tools(v4, 0)})
    talk = Conversation(v4, task, augmenter=augment, tool_style="none")
    talk.act(f"[{reply}]")
    hint = talk.said.partition("Hint: ")[2]
    assert all(name in hint for name in named), hint
