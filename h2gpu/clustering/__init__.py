"""Points → trees: KD-tree of clusters, admissibility of cluster pairs, tree of matrix blocks.

Clusters grow where the points are, on the CPU or the GPU; trees are on the host. Only geometry is known here: nothing
of covariances or matrices.
"""

from h2gpu.clustering.admissibility import Admissibility
from h2gpu.clustering.block_tree import BlockTree
from h2gpu.clustering.cluster_tree import ClusterTree
from h2gpu.clustering.sampled_blocks import SampledBlocks

__all__ = ["Admissibility", "BlockTree", "ClusterTree", "SampledBlocks"]
