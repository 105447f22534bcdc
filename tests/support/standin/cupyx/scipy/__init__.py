from cupyx.scipy import linalg, sparse

__all__ = ["linalg", "sparse"]
