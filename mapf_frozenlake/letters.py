"""The letters of starts and goals on a written board. Agents 0–4 as in "From Trainee to Trainer": S s A B C, G g a b c."""

ICE, HOLE = "F", "H"
_MORE = "DEIJKLMNOPQRTUVWXYZ"  # neither F, G, H nor S, which are taken
START_LETTERS = ("S", "s", "A", "B", "C", *_MORE)
GOAL_LETTERS = ("G", "g", "a", "b", "c", *_MORE.lower())
MAX_LETTERED_AGENTS = len(START_LETTERS)
