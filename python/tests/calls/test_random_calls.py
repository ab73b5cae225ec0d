"""A few of the calls with wrong arguments that random_calls.py makes by hand."""

import pytest
import random_calls

pytestmark = pytest.mark.usefixtures("without_gpu")


@pytest.mark.filterwarnings("ignore")
def test_calls():
    counts, wrong = random_calls.run(list(random_calls.TARGETS), range(12))
    assert not wrong
    assert all(counts[name, "result"] + counts[name, "error"] for name in random_calls.TARGETS)


def test_wrong_results_are_found(monkeypatch):
    """Calls that give something else, or fail with another's error, are not taken for right."""
    make, call, judge = random_calls.TARGETS["merge_states"]
    for wrong in (lambda **given: [0 * each for each in call(**given)], lambda **_: 1 // 0):
        monkeypatch.setitem(random_calls.TARGETS, "merge_states", (make, wrong, judge))
        assert random_calls.run(["merge_states"], range(8))[1]
