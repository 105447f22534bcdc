"""python -m h2gpu.apps.autotune: see tune."""

from h2gpu.apps.autotune.tune import main

raise SystemExit(main())
