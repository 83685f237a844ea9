"""Run all mutants, or those of a name or a table: python -m tests.mutants [NAME ...]."""

import os
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from tests.mutants.planting import Mutant, Verdict, first_failure, in_copy, mutants, run


def main(names: list[str]) -> int:
    """Run the mutants, a worker on each core; 1 if one survives or nothing can be proved."""
    started = time.perf_counter()
    chosen = [m for m in mutants() if not names or m.name in names or m.table in names]
    if not chosen:
        print(f"no mutant and no table has the name {' or '.join(names)}")
        return 1
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        commands = sorted({mutant.command for mutant in chosen})
        controls = zip(commands, pool.map(in_copy, commands), strict=True)
        verdicts = pool.map(run, chosen)
        for command, (status, text) in controls:
            if status != 0:
                why = first_failure(text) or f"exit {status}"
                print(f"{' '.join(command)} fails without a mutant, which proves nothing: {why}")
                pool.shutdown(cancel_futures=True)
                return 1
        survivors = _survivors(zip(chosen, verdicts, strict=True))
    killed, seconds = len(chosen) - len(survivors), time.perf_counter() - started
    print(f"{killed} of {len(chosen)} killed in {seconds:.0f} s")
    for mutant in survivors:
        print(f"SURVIVED {mutant.name} ({mutant.file}): {mutant.idea}")
    return bool(survivors)


def _survivors(verdicts: Iterable[tuple[Mutant, Verdict]]) -> list[Mutant]:
    """Print each verdict as it comes, with the line that killed; return the mutants that live."""
    living = []
    for mutant, verdict in verdicts:
        said = "killed" if verdict.killed else "SURVIVED"
        print(f"{said:8} {verdict.seconds:5.1f} s  {mutant.name}\n{'':18}{verdict.how}", flush=True)
        living += [] if verdict.killed else [mutant]
    return living


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
