"""The one error of the test cluster."""


class ClusterError(Exception):
    """What went wrong, in words for whoever started the test cluster."""
