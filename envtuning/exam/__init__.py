"""The exam: any engineer scored by real trainings of small transformers. See ``docs/exam.md``."""

import gymnasium

ENV_ID = "EngineerExam-v0"

if ENV_ID not in gymnasium.registry:
    gymnasium.register(
        ENV_ID,
        entry_point="envtuning.exam_env:EngineerExamEnv",
        vector_entry_point="envtuning.exam_env:EngineerExamVectorEnv",
    )
