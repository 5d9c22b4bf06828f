"""Did the dialogue succeed?"""

from __future__ import annotations

from rlexp.envs.restaurant.domain import Domain
from rlexp.envs.restaurant.goals import Goal, wants


def is_success(domain: Domain, goal: Goal) -> bool:
    """Objective success: every question answered, by a venue that meets the goal as it
    stands now.

    Who ended the dialogue does not matter, and neither does what the system believed.

    :param domain: the venues
    :param goal: the goal at the very end of the dialogue, changes of mind included
    """
    if not goal.all_answered:
        return False
    venue = domain.venue_by_name.get(goal.venue or "")
    return venue is not None and wants(goal, venue)
