"""One rank of a benchmark as a process: `python -m pycollective.bench.rank PLAN GLOO_INIT_METHOD`.

Rank 0 writes one JSON line for each row to standard output.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from pycollective.bench.measure import run_rank
from pycollective.bench.plan import Plan
from pycollective.errors import PycollectiveError


def main() -> int:
    """Runs the rank; returns the exit status."""
    plan = Plan.from_json(sys.argv[1])
    try:
        for row in run_rank(plan, sys.argv[2]):
            print(json.dumps(asdict(row)), flush=True)
    except PycollectiveError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
