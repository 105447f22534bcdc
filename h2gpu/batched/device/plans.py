"""Plans made once for an object that never changes, kept as long as it lives."""

from weakref import WeakKeyDictionary

_plans = WeakKeyDictionary()


def planned(owner, key, make):
    """make(), remembered for this owner and key."""
    plans = _plans.setdefault(owner, {})
    if key not in plans:
        plans[key] = make()
    return plans[key]
