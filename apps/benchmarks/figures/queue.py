"""Several commands at once, each in a slot of its own, within a limit.

What needs several GPUs comes first, alone; then the longest first. A command begins where its seconds fit into
what is left of the limit; others are left out. Each is given PATIENCE times its seconds. The limit ends none: past it
nothing waits for a slot, and what runs is nearly measured. Whoever must end by the clock interrupts it (`timeout`).
"""

import time
from dataclasses import dataclass

PATIENCE, LEAST = 4, 300.0  # times the rough seconds, and seconds that any command is given
PAUSE = 0.2  # seconds between two looks


@dataclass(frozen=True)
class Outcome:
    """How an entry ended: state "done", "failed" or "left out", seconds it took, and why."""

    entry: object
    state: str
    seconds: float
    why: str = ""


@dataclass(frozen=True)
class Running:
    """A command in its slots, since when, and until when it may run."""

    entry: object
    slots: list
    command: object
    begun: float
    end: float


class Queue:
    """The run of some entries.

    slots   of the machine
    start   function of (entry, its slots) to a command with `poll` and `stop` (command.py)
    limit   seconds that rough seconds must fit into
    tell    takes a line of progress
    """

    def __init__(self, entries, slots, start, limit=float("inf"), tell=print, clock=time.monotonic, pause=time.sleep):
        self.waiting = sorted(entries, key=lambda entry: (not needs_all(entry), -entry.seconds))
        self.free, self.running, self.outcomes = list(slots), [], []
        self.start, self.tell, self.clock, self.pause = start, tell, clock, pause
        self.begun, self.end = clock(), clock() + limit

    def run(self):
        """The Outcomes of all entries; whatever ends it ends the commands that run."""
        try:
            while self.waiting or self.running:
                self._leave_out()
                self._begin()
                self._look()
                if self.running:
                    self.pause(PAUSE)
        finally:
            for one in self.running:
                self._told(Outcome(one.entry, "failed", self.clock() - one.begun, one.command.stop("interrupted")))
        return self.outcomes

    def _leave_out(self):
        """What does not fit any more."""
        left = self.end - self.clock()
        for entry in [entry for entry in self.waiting if entry.seconds > left]:
            self.waiting.remove(entry)
            why = f"about {entry.seconds:.0f} s do not fit into the {max(left, 0):.0f} s that are left"
            self._told(Outcome(entry, "left out", 0.0, why))

    def _begin(self):
        """The next ones, as long as there are slots for them: all of them for what runs alone."""
        while self.waiting and self.free:
            entry = self.waiting.pop(0)
            taken = self.free if needs_all(entry) else self.free[:1]
            self.free = self.free[len(taken) :]
            now = self.clock()
            self.tell(f"{now - self.begun:6.0f} s  {entry.name} begins{_where(taken)}, about {entry.seconds:.0f} s")
            end = now + max(LEAST, PATIENCE * entry.seconds)
            self.running.append(Running(entry, taken, self.start(entry, taken), now, end))

    def _look(self):
        """Take what has ended, and end what has passed its limit."""
        for one in list(self.running):
            now, problem = self.clock(), one.command.poll()
            if problem is None and now >= one.end:
                problem = one.command.stop(f"stopped at its limit, after {now - one.begun:.0f} s")
            if problem is not None:
                self.running.remove(one)
                self.free += one.slots
                self._told(Outcome(one.entry, "failed" if problem else "done", now - one.begun, problem))

    def _told(self, outcome):
        self.outcomes.append(outcome)
        spent = f", {outcome.seconds:.0f} s" if outcome.state != "left out" else ""
        why = f": {'; '.join(line.strip() for line in outcome.why.splitlines()[:2])}" if outcome.why else ""
        self.tell(f"{self.clock() - self.begun:6.0f} s  {outcome.entry.name} {outcome.state}{spent}{why}")


def needs_all(entry):
    """Whether nothing may run beside it."""
    return entry.gpus > 1


def _where(slots):
    gpus = ",".join(slot.gpu for slot in slots if slot.gpu)
    return f" on GPU {gpus}" if gpus else f" on {sum(len(slot.cores) for slot in slots)} cores"
