"""Shortens a sequence of requests as long as it still ends in the same sort of difference."""
import copy


def spots(value, path=()):
    """Every member and element, the large ones first."""
    members = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    for key, inner in members:
        yield path + (key,)
    for key, inner in members:
        yield from spots(inner, path + (key,))


def without(body, path):
    made = copy.deepcopy(body)
    here = made
    for key in path[:-1]:
        here = here[key]
    del here[path[-1]]
    return made


def smaller(replay, sort_of, sequence, answers, tries=150):
    """`replay` answers with (number, answers) of the first difference or None. The smallest sequence found, and its
    answers."""
    sort = sort_of(sequence[-1], answers)

    def holds(candidate):
        nonlocal tries, answers
        tries -= 1
        found = replay(candidate)
        if found is None or found[0] != len(candidate) - 1 or sort_of(candidate[-1], found[1]) != sort:
            return False
        answers = found[1]
        return True

    for number in range(len(sequence) - 2, -1, -1):
        candidate = sequence[:number] + sequence[number + 1 :]
        if tries > 0 and holds(candidate):
            sequence = candidate
    for number in range(len(sequence) - 1, -1, -1):
        progress = True
        while progress and tries > 0:
            progress = False
            for path in list(spots(sequence[number].get("body"))):
                if tries <= 0:
                    break
                candidate = copy.deepcopy(sequence)
                candidate[number]["body"] = without(candidate[number]["body"], path)
                if holds(candidate):
                    sequence, progress = candidate, True
                    break
    return sequence, answers
