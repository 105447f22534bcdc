"""Plans made once: for an object that never changes, kept as long as it lives; or for a shape on a device."""

from functools import lru_cache, wraps
from weakref import WeakKeyDictionary

import numpy as np

SHAPES = 4096  # plans of a routine that are kept
_plans = WeakKeyDictionary()


def planned(owner, key, make, settled=True):
    """make(), remembered for this owner and key; done when it is, for other streams will use it too.

    settled   False where nothing has to be waited for: no other stream will
    """
    plans = _plans.setdefault(owner, {})
    if key not in plans:
        plan = make()
        if settled and getattr(owner, "xp", np) is not np:
            stream = owner.xp.cuda.get_current_stream()
            if not stream.is_capturing():
                stream.synchronize()
        plans[key] = plan
    return plans[key]


def remembered(plan):
    """plan(*key) of a routine, made once for each key and current device: all that its launches need but arrays."""
    import cupy

    current = cupy.cuda.runtime.getDevice
    made = lru_cache(SHAPES)(lambda device, *key: plan(*key))

    @wraps(plan)
    def of(*key):
        return made(current(), *key)

    of.cache_clear = made.cache_clear  # tuning.trial forgets
    return of
