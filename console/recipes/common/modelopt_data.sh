# Pick the conversations to train on, and make sure that the training can work with them and with the target.
set -eu
@PYTHON@ prepare_training.py --source @data_path@ --samples @samples@ --seed @seed@ --target @TARGET_PATH@ \
  --algorithm @ALGORITHM@ --block-size @block_size@ --draft-tokens @draft_tokens@ \
  --sequence-length @sequence_length@ --mask-token-id @mask_token_id@ --conv-group-size @conv_group_size@ \
  --intermediate-size @drafter_intermediate_size@ --answer-only-loss @answer_only_loss@ \
  --chat-template @chat_template@ --output data.json
