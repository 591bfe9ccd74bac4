"""Programs that run on the cluster: standard library only, Python 3.8 and newer, nothing of ours imported."""
