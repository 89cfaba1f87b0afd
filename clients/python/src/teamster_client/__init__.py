"""A client of ``teamster serve``: starts, follows, answers and stops runs of coding agents."""

from . import types
from .aio import AsyncRun, AsyncTeamster
from .errors import ConnectionLost, Problem
from .sync import Run, Teamster

__all__ = ["AsyncRun", "AsyncTeamster", "ConnectionLost", "Problem", "Run", "Teamster", "types"]
