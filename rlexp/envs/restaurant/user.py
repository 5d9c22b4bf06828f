"""The simulated user: a goal, an agenda of things to say, and patience."""

from __future__ import annotations

from random import Random

from rlexp.envs.restaurant.acts import DONTCARE, NO_VENUE, DialogueAct, Item, same_act
from rlexp.envs.restaurant.user_check import check_implicitly
from rlexp.envs.restaurant.user_goal_change import choose_among_listed, settle_or_change
from rlexp.envs.restaurant.user_state import BYE, UserState

NULL = DialogueAct("null")
REQALTS = DialogueAct("reqalts")
_THANKYOU = DialogueAct("thankyou")
_ACK = DialogueAct("ack")
_HELLO = DialogueAct("hello")
_AFFIRM = DialogueAct("affirm")
_NEGATE = DialogueAct("negate")

# Said as they are: neither shortened, nor combined with the next thing on the agenda, nor repeated later on.
_SAID_AS_IS = frozenset({"thankyou", "ack", "repeat", "deny", "confirm"})
_COMBINING = frozenset({"inform", "affirm", "negate", "hello"})


class SimulatedUser(UserState):
    """A user who answers system acts."""

    def start(self, random: Random) -> None:
        """Begin a dialogue.

        :param random: the dialogue's source of randomness, used until the next start
        """
        super().start(random)
        self._previous_system_act: DialogueAct | None = None
        self._last_act = NULL

    def turn(self, system_act: DialogueAct) -> DialogueAct:
        """Receive a system act and answer it.

        :param system_act: what the system says
        :return: what the user says; ``bye()`` when the user leaves
        """
        previous, self._previous_system_act = self._previous_system_act, system_act
        kind = system_act[0]
        if kind == "null" or (previous is not None and same_act(previous, system_act)):
            self.patience -= 1
        if self.patience < 1:
            # Not even listened to: nothing that this act answers counts.
            self.end_dialogue()
            return self.agenda.pop()
        if kind == "inform":
            self._receive_inform(system_act)
        elif kind == "request":
            self._receive_request(system_act[1][0][0] or "")
        elif kind == "confirm":
            self._receive_confirm(system_act)
        elif kind == "select":
            slot = system_act[1][0][0] or ""
            self.agenda.append(DialogueAct("inform", ((slot, "=", self.goal.constraints[slot]),)))
        elif kind == "reqmore":
            self._receive_reqmore()
        elif kind == "hello":
            if self.random.random() < self.parameters.greeting:
                self.agenda.append(_HELLO)
        elif kind == "bye":
            self.end_dialogue()
        else:
            self.agenda.append(self._last_act)
        return self._respond(system_act)

    # -- receiving
    # --------------------------------------------------------------------------------------------------

    def _receive_request(self, slot: str) -> None:
        goal, agenda = self.goal, self.agenda
        if goal.venue is not None and not goal.all_answered:
            open_slot = goal.open_requests[0]
            agenda.append(DialogueAct("request", (("name", "=", goal.venue), (open_slot, "=", None))))
            return
        for position in range(len(agenda) - 1, -1, -1):
            act = agenda[position]
            if act[0] == "inform" and any(item[0] == slot for item in act[1]):
                agenda.append(agenda.pop(position))
                return
        agenda.append(DialogueAct("inform", ((slot, "=", goal.constraints[slot]),)))

    def _receive_confirm(self, system_act: DialogueAct) -> None:
        if not check_implicitly(self, system_act):
            return
        agenda = self.agenda
        if agenda[-1][0] == "inform" and self.random.random() < self.parameters.affirm_combination:
            agenda.append(DialogueAct("affirm", agenda.pop()[1]))
        else:
            agenda.append(_AFFIRM)

    def _receive_reqmore(self) -> None:
        goal, agenda, parameters, draw = self.goal, self.agenda, self.parameters, self.random.random
        top = agenda[-1]
        if len(agenda) > 1 and not any(item[0] == "type" for item in top[1]):
            if top[0] == "inform" and draw() < parameters.combine_affirm_with_agenda_item:
                agenda[-1] = DialogueAct("affirm", top[1])
        elif goal.all_answered:
            if draw() < parameters.no_after_reqmore:
                agenda.append(_NEGATE)
            elif not any(act[0] in ("inform", "confirm") for act in agenda):
                agenda.append(BYE)
        elif goal.venue is not None:
            agenda.extend(DialogueAct("request", ((slot, "=", None),)) for slot in goal.open_requests)
        elif draw() < parameters.yes_after_reqmore:
            agenda.append(_AFFIRM)
        else:
            agenda.append(
                DialogueAct("inform", (("type", "=", self.domain.entity_type), *self._constraints()))
            )

    def _constraints(self) -> list[Item]:
        """Every constraint that matters, as items."""
        goal = self.goal
        items: list[Item] = [
            (slot, "=", value) for slot, value in goal.constraints.items() if value != DONTCARE
        ]
        if goal.name_is is not None:
            items.append(("name", "=", goal.name_is))
        items.extend(("name", "!=", name) for name in goal.name_not)
        return items

    def _receive_inform(self, system_act: DialogueAct) -> None:
        goal, agenda, parameters, draw = self.goal, self.agenda, self.parameters, self.random.random
        items = system_act[1]
        slot, operator, name = items[0]
        offered = name if slot == "name" and operator == "=" and name != NO_VENUE else None
        if offered is not None and offered != goal.requests["name"]:
            goal.forget_answers()
        if not check_implicitly(self, system_act) or not settle_or_change(self, system_act, offered):
            return
        chosen = None if offered is not None else choose_among_listed(self, system_act)

        requests = goal.requests
        for slot, operator, value in items:
            if slot in requests and operator == "=" and value != NO_VENUE:
                requests[slot] = value
        if draw() < parameters.inform_to_confirm:
            self._ask_instead_of_telling()
        politeness = draw()
        if politeness < parameters.thank_after_inform:
            agenda.append(_THANKYOU)
        elif politeness < parameters.thank_after_inform + parameters.acknowledge_after_inform:
            agenda.append(_ACK)
        elif len(agenda) > 1 and draw() < parameters.deal_with_pending:
            pass
        elif not goal.all_answered:
            first, *others = goal.open_requests
            asked: list[Item] = [(first, "=", None)]
            asked.extend((slot, "=", None) for slot in others if draw() < parameters.add_slot_to_request)
            if chosen is not None:
                asked.append(("name", "=", chosen))
            agenda.append(DialogueAct("request", tuple(asked)))

    def _ask_instead_of_telling(self) -> None:
        for position, act in enumerate(self.agenda):
            if act[0] == "inform" and act[1][0][2] != DONTCARE:
                self.agenda[position] = DialogueAct("confirm", act[1])

    # -- responding
    # ----------------------------------------------------------------------------------------------------

    def _respond(self, system_act: DialogueAct) -> DialogueAct:
        act = self.agenda.pop()
        kind, items = act
        for item in items:
            if item[1] == "!=":
                act, kind, items = REQALTS, "reqalts", ()
                break
        if items and len(self.agenda) > 1 and kind in ("inform", "confirm", "affirm", "negate"):
            self._drop_from_agenda([item[0] for item in items])
        if kind in _SAID_AS_IS or system_act[0] == "reqmore":
            return act
        if kind == "inform":
            _, operator, value = items[0]
            if (
                value == DONTCARE
                and system_act[0] in ("request", "select")
                and self.random.random() < self.parameters.no_slot_with_dontcare
            ):
                act = DialogueAct("inform", ((None, operator, value), *items[1:]))
        elif kind == "request" and len(items) == 1:
            venue = self.goal.requests["name"]
            if venue is not None and self.random.random() < self.parameters.add_venue_name_to_request:
                act = DialogueAct("request", (*items, ("name", "=", venue)))
        if kind in _COMBINING:
            act = self._combine(act)
        self._last_act = act
        return act

    def _drop_from_agenda(self, slots: list[str | None]) -> None:
        """Forget what was on the agenda about slots that are being spoken about now."""
        self.agenda[:] = [
            act
            for act in self.agenda
            if act[0] not in ("inform", "confirm", "affirm") or not any(item[0] in slots for item in act[1])
        ]

    def _combine(self, act: DialogueAct) -> DialogueAct:
        agenda, draw, probability = self.agenda, self.random.random, self.parameters.inform_combination
        kind, items = act
        while agenda:
            following = agenda[-1][0]
            if following != "inform" and not (kind == "hello" and following == "request"):
                break
            if draw() >= probability:
                break
            items = (*items, *agenda.pop()[1])
        return act if items is act[1] else DialogueAct(kind, items)
