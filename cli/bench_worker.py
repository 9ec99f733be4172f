"""The worker process of `pelton bench`: a job on the first line of its input, then its turns.

Only answers go to what was its standard output: what the program prints goes to stderr.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Serve the job until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from pelton.aot.bench import Job, Subject, serve

    from .export import argument_of, load_program
    from .inputs import parse_input

    job = Job.from_json(sys.stdin.readline())
    sys.path.insert(0, os.getcwd())

    def load() -> Subject:
        inputs = [parse_input(text) for text in job.inputs]
        program = load_program(job.program)
        positional = [argument_of(given) for given in inputs if given.name is None]
        named = {given.name: argument_of(given) for given in inputs if given.name is not None}
        return Subject(program, positional, named, job.seed)

    serve(job, load, sys.stdin, answers)


if __name__ == "__main__":
    main()
