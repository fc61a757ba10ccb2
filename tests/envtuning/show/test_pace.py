import pytest

from envtuning.show.pace import Pace


@pytest.mark.parametrize(
    ("of", "done", "seconds", "said"),
    [
        (15, 0, 60, "0 of 15"),
        (15, 7, 70, "7 of 15, about 80 s left"),
        (15, 5, 60, "5 of 15, about 2 min left"),
        (40, 4, 1_200, "4 of 40, about 3.0 h left"),
        (15, 15, 900, "15 of 15"),
    ],
)
def test_the_rest_is_estimated_by_what_is_done(of, done, seconds, said, monkeypatch):
    monkeypatch.setattr("envtuning.show.pace.time.monotonic", lambda: 1_000.0 + seconds)
    pace = Pace(of, begun=1_000.0)
    for _ in range(done):
        pace.step()
    assert str(pace) == said
