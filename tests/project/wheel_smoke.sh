#!/usr/bin/env bash
# What a user gets from the wheel alone: it installs into a bare environment, and every command answers and does a small piece of work.
# Usage: tests/project/wheel_smoke.sh [WHEEL]     (without a wheel, one is built; PYTHON names the interpreter)
set -euo pipefail
repository=$(cd "$(dirname "$0")/../.." && pwd)
where=$(mktemp -d)
trap 'rm -rf "$where"' EXIT
"${PYTHON:-python3}" -m venv "$where/venv"
bin="$where/venv/bin"
install() { "$bin/pip" install -q --disable-pip-version-check -c "$repository/constraints.txt" ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "$@"; }
if [ $# = 0 ]; then
  install build
  "$bin/python" -m build -q --wheel --outdir "$where/dist" "$repository"
  set -- "$where"/dist/*.whl
fi
wheel=$(realpath "$1")
cd "$where" # the checkout is not on the path
unset PYTHONPATH

step() { echo "· $*"; }
quietly() { "$@" >"$where/out" 2>&1 || { cat "$where/out"; echo "failed: $*"; exit 1; }; }

step "the world, without extras"
install "$wheel"
quietly "$bin/python" -c "
import gymnasium as gym, mapf_frozenlake as mfl
env = gym.make('MAPFFrozenLake-v0', size=4); env.reset(seed=0); env.step(env.action_space.sample())
instance = mfl.generate(mfl.LakeConfig.single(4, 2), n=1)[0]
assert mfl.judge(instance, mfl.solve(instance).plan).optimal and len(mfl.load_suite('quick')) == 126
"
quietly "$bin/python" -m mapf_frozenlake.suite --help
quietly "$bin/python" -m mapf_frozenlake.warmup
quietly "$bin/envtuning" --help
grep -q "pretrain *grpo" "$where/out"
if "$bin/envtuning" pretrain model >"$where/out" 2>&1; then echo "envtuning pretrain should name the missing extra"; exit 1; fi
grep -q "mapf-frozenlake\[grpo\]" "$where/out"

step "every command of the loop and of the engineers says how it is used"
install "$wheel[rllib]"
for command in run resume show report compare exam replay tensorboard presets weights pretrain evaluate openenv; do quietly "$bin/envtuning" "$command" --help; done
listed=$("$bin/python" -c "
import typer.main
from envtuning.cli import app
print(' '.join(sorted(typer.main.get_command(app).commands)))")
[ "$listed" = "compare evaluate exam openenv presets pretrain replay report resume run show tensorboard weights" ] || { echo "this script does not try all of: $listed"; exit 1; }
for command in propose prompt list; do quietly "$bin/python" -m engineers "$command" --help; done
quietly "$bin/python" -m envtuning.worlds.bfcl --help

step "a small run, and every view of it"
export ENVTUNING_TRUST=
quietly "$bin/envtuning" run scripted --out runs/first
quietly "$bin/envtuning" resume runs/first
quietly "$bin/envtuning" show runs/first
quietly "$bin/envtuning" report runs/first --out page.html
quietly "$bin/envtuning" replay runs/first --stage 1 --case 0 --out film.svg
quietly "$bin/envtuning" tensorboard runs/first
quietly "$bin/envtuning" compare scripted --engineers fixed,rules --seeds 1 --stages 2 --out runs/both
quietly "$bin/envtuning" presets small-corridors
quietly "$bin/python" -c "from envtuning.testing import check_world; from envtuning.worlds import make_world; world = make_world('small-skills'); check_world(world, world.config_type())"
quietly "$bin/python" -m engineers list
quietly "$bin/python" -m engineers propose --report example --engineer rules
"$bin/envtuning" compare --example >mine.yaml
quietly "$bin/envtuning" compare mine.yaml --engineers uniform --seeds 1
quietly "$bin/python" -m engineers propose --report runs/first/stages/01/report.json --engineer rules
quietly "$bin/python" -m engineers prompt --report runs/first/stages/01/report.json --context V4
[ -s page.html ] && [ -s film.svg ]

step "a language model under GRPO, killed in its second stage and resumed"
install "$wheel[grpo]"
export OMP_NUM_THREADS=1
quietly "$bin/python" -c "
from envtuning.trainees.language.small import small_model
from envtuning.trainees.language.tokenizer import sign_tokenizer
tokenizer = sign_tokenizer()
small_model(tokenizer, width=16, layers=1, heads=2).save_pretrained('tiny')
tokenizer.save_pretrained('tiny')
"
skills=(run small-skills --stages 2)
for change in trainee.options.model=./tiny suites.validation_per_slice=1 suites.test_per_slice=1; do skills+=(--set "$change"); done
quietly "$bin/envtuning" "${skills[@]}" --out runs/whole
"$bin/envtuning" "${skills[@]}" --out runs/killed >"$where/out" 2>&1 &
run=$!
for _ in $(seq 1800); do
  if [ -e runs/killed/stages/00/done.json ] || ! kill -0 "$run" 2>/dev/null; then break; fi
  sleep 0.1
done
kill -9 "$run" || { cat "$where/out"; echo "the run ended before it was killed"; exit 1; }
wait "$run" 2>/dev/null || true
[ ! -e runs/killed/stages/01/done.json ] || { echo "the run was not killed in its second stage"; exit 1; }
quietly "$bin/envtuning" resume runs/killed
cmp runs/whole/stages/01/checkpoint/model.safetensors runs/killed/stages/01/checkpoint/model.safetensors
quietly "$bin/envtuning" show runs/killed
echo "the wheel works alone on $("$bin/python" --version)"
