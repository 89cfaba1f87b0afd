"""A client of ``teamster serve``: starts, follows, answers and stops runs of coding agents."""

from . import types
from .aio import AsyncRun, AsyncSession, AsyncTeamster, AsyncTurn
from .errors import ConnectionLost, Problem, TeamsterError, UnexpectedResponse
from .sync import Run, Session, Teamster, Turn

__all__ = ["AsyncRun", "AsyncSession", "AsyncTeamster", "AsyncTurn", "ConnectionLost", "Problem", "Run", "Session", "Teamster", "TeamsterError", "Turn", "UnexpectedResponse", "types"]
