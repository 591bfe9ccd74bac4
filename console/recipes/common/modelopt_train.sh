# Train with Model-Optimizer, export the newest checkpoint, and check both, also after a training that failed.
set -eu
export IMAGE=@CONTAINER_IMAGE@ TRAIN_PYTHON=@train_python@ MODELOPT=@modelopt_path@ MODELOPT_RECIPE=@modelopt_recipe@
export DATA_DIR=@DATA_DIR@ NODES=@NODES@ GPUS_PER_NODE=@GPUS_PER_NODE@ HF_HUB_OFFLINE=1 HEAD_NODE=
export PYTHONPATH="$MODELOPT${PYTHONPATH:+:$PYTHONPATH}"
run=$PWD/run
if [ "$NODES" -gt 1 ]; then
  HEAD_NODE=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
fi
set -- model.model_name_or_path=@TARGET_PATH@ model.trust_remote_code=@trust_remote_code@ \
  data.data_path="$DATA_DIR/train.jsonl" training.output_dir="$run" training.report_to=none training.disable_tqdm=true \
  training.num_train_epochs=@epochs@ training.max_steps=@max_steps@ training.learning_rate=@learning_rate@ \
  training.per_device_train_batch_size=@per_device_batch@ training.gradient_accumulation_steps=@gradient_accumulation@ \
  training.training_seq_len=@sequence_length@ training.answer_only_loss=@answer_only_loss@ \
  training.logging_steps=@log_every@ training.save_steps=@save_every@ training.seed=@seed@ \
  dflash.dflash_block_size=@block_size@ dflash.dflash_num_anchors=@anchors@ dflash.dflash_mask_token_id=@mask_token_id@ \
  dflash.dflash_architecture_config.num_hidden_layers=@draft_layers@
template=@chat_template@
if [ -n "$template" ]; then
  set -- "$@" data.chat_template="$template"
fi
case @ALGORITHM@ in
  dflash2) set -- "$@" dflash.dflash_architecture_config.projector_type=dflash2 \
    dflash.dflash_architecture_config.conv_group_size=@conv_group_size@ ;;
esac
status=0
sh in_container.sh -m @WORKSPACE@ -m @HF_LOCAL@ -m @TARGET_PATH@ -m @modelopt_path@ sh modelopt_step.sh "$@" || status=$?
newest=$(@PYTHON@ check_training.py "$run" --newest) || newest=
if [ -n "$newest" ]; then
  set -- --model_path "$newest" --export_path @EXPORT_PATH@
  if [ @trust_remote_code@ = true ]; then
    set -- "$@" --trust_remote_code
  fi
  STEP_NODES=1 sh in_container.sh -m @WORKSPACE@ -m @HF_LOCAL@ -m @TARGET_PATH@ -m @modelopt_path@ "$TRAIN_PYTHON" \
    "$MODELOPT/examples/speculative_decoding/scripts/export_hf_checkpoint.py" "$@" || status=$?
fi
@PYTHON@ check_training.py "$run" --algorithm @ALGORITHM@ --export-path @EXPORT_PATH@ --exported-from "$newest" \
  --max-final-loss @max_final_loss@ --output regression_check.json || status=$?
@PYTHON@ check_export.py @EXPORT_PATH@ --target @TARGET_PATH@ --output export_check.json || status=$?
exit "$status"
