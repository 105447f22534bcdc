"""A plan is made once; who makes it waits for the device, unless it says that no other stream will read it."""

from types import SimpleNamespace

from h2gpu.batched.device.plans import planned


def test_only_what_other_streams_read_is_waited_for():
    waits, made = [], []

    class Owner:
        stream = SimpleNamespace(is_capturing=lambda: False, synchronize=lambda: waits.append(len(made)))
        xp = SimpleNamespace(cuda=SimpleNamespace(get_current_stream=lambda: Owner.stream))

    owner = Owner()
    for _ in range(2):
        assert planned(owner, "mine", lambda: made.append("mine"), settled=False) is None
    assert made == ["mine"] and waits == []
    for _ in range(2):
        planned(owner, "all", lambda: made.append("all"))
    assert made == ["mine", "all"] and waits == [2]
