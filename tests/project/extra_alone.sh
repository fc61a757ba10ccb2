#!/usr/bin/env bash
# One extra in a bare environment: it installs without the others, and what it promises imports.
# Usage: tests/project/extra_alone.sh EXTRA
set -euo pipefail
cd "$(dirname "$0")/../.."
extra=$1
declare -A proof=(
  [loop]="import envtuning.loop.run, envtuning.cli"
  [rllib]="import ray.rllib, envtuning.trainees.rllib.trainee"
  [openai]="import openai, engineers; engineers.make('openai/some-model', api_key='none')"
  [gemini]="import google.genai, engineers; engineers.make('gemini/some-model', api_key='none')"
  [litellm]="import litellm, engineers; engineers.make('litellm/openai/some-model', api_key='none')"
  [local]="import transformers, llguidance, torch"
  [grpo]="import trl"
  [sb3]="import stable_baselines3, envtuning.trainees.sb3, envtuning.loop.run"
  [bfcl]="import subprocess, sys; subprocess.run([sys.executable, '-m', 'envtuning.worlds.bfcl', 'install'], check=True); import gymnasium, envtuning.worlds.bfcl; gymnasium.make('BFCLMultiTurn-v0').reset(seed=0)"
  [exam]="from envtuning.exam.bounds import Even, played; from envtuning.exam.families import CODES; from envtuning.exam.session import Start; played(CODES, Start(0), Even())"
  [openenv]="import os, subprocess, sys; subprocess.run([sys.executable, os.environ['CHECKS'] + '/with_openenv.py'], check=True)"
  [verifiers]="import os, subprocess, sys; subprocess.run([sys.executable, os.environ['CHECKS'] + '/with_verifiers.py'], check=True)"
  [reasoning-gym]="from envtuning.testing import check_world; from envtuning.worlds import make_world; world = make_world('reasoning-gym'); check_world(world, world.config_type.model_validate({'tasks': {'chain_sum': {}, 'gcd': {}}}))"
  [render]="import pygame, PIL"
)
export CHECKS=$PWD/clients/checks # which need nothing of the checkout
where=$(mktemp -d)
trap 'rm -rf "$where"' EXIT
python3 -m venv "$where/venv"
"$where/venv/bin/pip" install -q -c constraints.txt ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} ".[$extra]"
cd "$where"
"$where/venv/bin/python" -c "import mapf_frozenlake, engineers; ${proof[$extra]}"
echo "$extra works alone"
