// batched/gather.cuh — out_b = the leading part of A_b, or of A_bᵀ; one block a tile of Tile × Tile entries.
// A transposed tile passes through shared memory, so that reads and writes both run along rows.
#pragma once

// A, out: buffers of all matrices   first: batch + 1 (tiles before each)   owner: tiles
// sources, pitches, flips: batch (first entry of A_b, its row length, whether to transpose)
// targets, rows, columns: batch (first entry of out_b, its shape)
template <typename Real, int Tile, int Lines>
__global__ __launch_bounds__(Tile * Lines)
void gather(const Real* A, Real* out, const long long* first, const int* owner,
            const long long* sources, const long long* pitches, const long long* flips,
            const long long* targets, const long long* rows, const long long* columns) {
    __shared__ Real tile[Tile][Tile + 1];
    const int b = owner[blockIdx.x];
    const long long t = blockIdx.x - first[b], across = (columns[b] + Tile - 1) / Tile, pitch = pitches[b];
    const long long i0 = t / across * Tile, j0 = t % across * Tile;
    const int lane = threadIdx.x % Tile, line = threadIdx.x / Tile;
    const long long m = rows[b], n = columns[b];
    A += sources[b];
    out += targets[b];
    if (flips[b]) {
        for (int l = line; l < Tile; l += Lines)
            if (j0 + l < n && i0 + lane < m) tile[l][lane] = A[(j0 + l) * pitch + i0 + lane];
        __syncthreads();
        for (int l = line; l < Tile; l += Lines)
            if (i0 + l < m && j0 + lane < n) out[(i0 + l) * n + j0 + lane] = tile[lane][l];
    } else {
        for (int l = line; l < Tile; l += Lines)
            if (i0 + l < m && j0 + lane < n) out[(i0 + l) * n + j0 + lane] = A[(i0 + l) * pitch + j0 + lane];
    }
}
