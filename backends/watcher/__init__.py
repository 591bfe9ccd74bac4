"""Result files on a cluster, watched through one channel."""
