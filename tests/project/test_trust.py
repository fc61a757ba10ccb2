"""The page on trust lists what a file may set, as the code has it."""

from tests.lazily import Lazy, needed

needed("ray", "torch", extra="rllib")
needed("stable_baselines3", extra="sb3")
needed("transformers", "trl", extra="grpo")
listing = Lazy("benchmarks.from_file")


def test_the_page_lists_every_option_that_a_file_may_set():
    assert listing.parts()[1] == listing.page_list(), "`python -m benchmarks.from_file` writes the list anew"


def test_the_list_holds_what_is_harmless_and_lacks_what_is_not():
    listed = listing.page_list()
    for name in ("`space`", "`learning_rate`", "`base_url`", "`net_arch`", "`mode`"):
        assert name in listed
    for name in (
        "transcript",
        "ledger",
        "desk",
        "launch",
        "trust_remote_code",
        "model_list",
        "`path`",
        "tensorboard_log",
        "megatron",
    ):
        assert name not in listed
