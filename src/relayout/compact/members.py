"""The files of a group, wherever the plan keeps them."""

from __future__ import annotations

import json
from pathlib import Path

from relayout.compact.plan import FileGroup
from relayout.errors import PlanRefused
from relayout.table.rewrites import GroupFiles, MembersElsewhere, digest_of


def files_of(group: FileGroup) -> GroupFiles:
    """The group's members; a file beside the plan that is gone or was changed is refused."""
    place = group.members
    if not isinstance(place, MembersElsewhere):
        return place
    try:
        with Path(place.file).open("rb") as beside:
            beside.seek(place.offset)
            line = beside.read(place.length).decode("utf-8", "surrogatepass")
    except (OSError, UnicodeDecodeError) as error:
        raise _lost(group, place, str(error)) from error
    if digest_of(line) != place.digest:
        raise _lost(group, place, "its content does not match the plan")
    return GroupFiles.from_json(json.loads(line))


def _lost(group: FileGroup, place: MembersElsewhere, why: str) -> PlanRefused:
    return PlanRefused(
        f"the files of group {group.group_id} cannot be read: {why}", where=place.file, next="make the plan again"
    )
