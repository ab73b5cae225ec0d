"""What other libraries call arguments is answered with what attn calls them."""

import attn
import pytest
from attn.options import host_names


@pytest.mark.parametrize(
    "name", ["attn_mask", "is_causal", "window_size", "dropout_p", "return_lse"]
)
def test_names_of_others(name):
    q = object()
    for function, given in (
        (attn.attention, (q, q, q)),
        (attn.compile, ()),
        (attn.prepare, (q, q, q)),
    ):
        options = {"chip": "sm_80"} if function is attn.prepare else {}
        with pytest.raises(TypeError) as error:
            function(*given, **options, **{name: 1})
        text = str(error.value)
        assert f"attn.{function.__name__} has no argument '{name}'; for that attn has" in text
        assert host_names.NAMES[name] in text


def test_names_that_nobody_has():
    with pytest.raises(
        attn.ArgumentTypeError, match="has no argument 'cusal'; did you mean 'causal'"
    ):
        attn.compile(q=(1, 1, 16, 32), cusal=True)
    with pytest.raises(attn.ArgumentTypeError, match="has no argument 'zzz'$"):
        attn.compile(q=(1, 1, 16, 32), zzz=True)
