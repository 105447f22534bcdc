// common/thread/tiling.cuh — which tile of which matrix a thread block works on.
#pragma once

namespace common {

struct Tile {
    int matrix, index;  // index: of the matrix's tiles; beyond the last one for blocks that have no work
};

// owner: matrix of every block, and first: tiles before each matrix; or both null: `each` blocks a matrix
__device__ inline Tile tile_of_block(const long long* first, const int* owner, int each) {
    const int block = blockIdx.x;
    if (!owner) return {block / each, block % each};
    const int b = owner[block];
    return {b, static_cast<int>(block - first[b])};
}

}  // namespace common
