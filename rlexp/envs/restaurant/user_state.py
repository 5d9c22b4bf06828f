"""What a simulated user keeps in mind during a dialogue; how it reacts is in ``user``, ``user_check`` and
``user_goal_change``."""

from __future__ import annotations

from random import Random

from rlexp.envs.restaurant.acts import DialogueAct
from rlexp.envs.restaurant.domain import SLOTS, Domain
from rlexp.envs.restaurant.goals import Goal, sample_goal
from rlexp.envs.restaurant.user_parameters import UserParameters, sample_parameters

BYE = DialogueAct("bye")


class UserState:
    """Goal, agenda and patience of one user, reused from dialogue to dialogue.

    :param domain: the domain
    :param user: parameter set, one of :data:`~rlexp.envs.restaurant.user_parameters.USERS`
    :param patience: (lowest, highest + 1) of the patience drawn for each dialogue
    """

    goal: Goal
    parameters: UserParameters
    random: Random
    agenda: list[DialogueAct]
    """What is still to be said; the end of the list is the top of the agenda."""

    def __init__(self, domain: Domain, user: str, patience: tuple[int, int]) -> None:
        self.domain = domain
        self.user = user
        self.patience_range = patience

    def start(self, random: Random) -> None:
        """Begin a dialogue: draw goal, parameters and patience, and fill the agenda.

        :param random: the dialogue's source of randomness, used until the next start
        """
        self.random = random
        self.goal = goal = sample_goal(self.domain, random)
        self.parameters = sample_parameters(self.user, random)
        low, high = self.patience_range
        self.patience = self.initial_patience = low + int(random.random() * (high - low))
        constraints = [DialogueAct("inform", ((slot, "=", goal.constraints[slot]),)) for slot in SLOTS]
        random.shuffle(constraints)
        # bye stays at the bottom, so the agenda never runs empty
        self.agenda = [BYE, *constraints, DialogueAct("inform", (("type", "=", self.domain.entity_type),))]
        self.first_venue_offered = False

    def end_dialogue(self) -> None:
        """Drop everything else from the agenda and say goodbye next."""
        self.agenda.clear()
        self.agenda.append(BYE)
