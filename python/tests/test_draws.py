"""Random draws of these tests, which a seed repeats."""

from conftest import Draws, make_rng


def test_equal_seeds():
    first, other = Draws(5), Draws(6)
    numbers = [first.draw_seed() for _ in range(2)]
    assert len({*numbers, other.draw_seed()}) == 3
    first.begin("another test")
    assert first.draw_seed() not in numbers
    first.begin("")
    assert [first.draw_seed() for _ in range(2)] == numbers


def test_option(pytestconfig, request):
    """Each draw of a test is another one, and the test begins anew with the same ones."""
    from conftest import draws

    one, other = make_rng().integers(2**32, size=2), make_rng().integers(2**32, size=2)
    draws.begin(f"{request.path.name} {request.node.name}")
    assert (make_rng().integers(2**32, size=2) == one).all() and (one != other).any()
    assert pytestconfig.getoption("seed") in (None, draws.seed)
