"""Training that can stop and go on: networks, their checkpoints, what is trained on what, the loop."""
