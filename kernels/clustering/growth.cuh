// clustering/growth.cuh — a level of a cluster tree whose splits are numbers of points that the host knows.
//     A cluster is split across the longest side of its box: of its points, in the order of that coordinate, the first
//     left_c go left. Every coordinate keeps all points ordered by (cluster, coordinate); a stable partition keeps them so.
// orders: dim × live points   columns: dim × n coordinates   first: clusters + 1, places before each cluster
#pragma once
#include "common/thread/constants.cuh"
#include "clustering/thread/segment.cuh"

namespace clustering {
using namespace common;

// columns = pointsᵀ, and keys, where −0 is 0   points: n × dim
template <typename Real>
__global__ void deal(const Real* points, Real* columns, Real* keys, long long n, int dim) {
    const long long i = own_number();
    if (i >= n) return;
    for (int j = 0; j < dim; j++) {
        const Real x = points[i * dim + j];
        columns[j * n + i] = x;
        keys[j * n + i] = x + Real(0);
    }
}

__global__ void narrow_orders(const long long* order, int* out, long long n) {
    const long long i = own_number();
    if (i < n) out[i] = static_cast<int>(order[i]);
}

// The tight box of each cluster, its first and last points by every coordinate, and the first of its longest sides.
// lower, upper: clusters × dim   axis: clusters
template <typename Real>
__global__ void corners(const Real* columns, const int* orders, const long long* first, long long n, long long live, int dim,
                        int clusters, Real* lower, Real* upper, int* axis) {
    const long long c = own_number();
    if (c >= clusters) return;
    int longest = 0;
    Real most = 0;
    for (int j = 0; j < dim; j++) {
        const Real a = columns[j * n + orders[j * live + first[c]]], b = columns[j * n + orders[j * live + first[c + 1] - 1]];
        lower[c * dim + j] = a;
        upper[c * dim + j] = b;
        if (j == 0 || b - a > most) {
            most = b - a;
            longest = j;
        }
    }
    axis[c] = longest;
}

// goes_left: n, by point   lefts: clusters + 1, points that go left before each cluster
__global__ void mark(const int* orders, const long long* first, const long long* lefts, const int* axis, long long live,
                     int clusters, unsigned char* goes_left) {
    const long long i = own_number();
    if (i >= live) return;
    const int c = segment_of(first, clusters, i);
    goes_left[orders[axis[c] * live + i]] = i - first[c] < lefts[c + 1] - lefts[c];
}

// Of each tile of Threads · Each places of an order, how many points go left; `tiles` blocks a coordinate.
template <int Threads, int Each>
__global__ __launch_bounds__(Threads)
void count(const int* orders, const unsigned char* goes_left, long long live, int tiles, int* counts) {
    __shared__ int sums[Threads / WARP];
    const long long tile = blockIdx.x % tiles;
    orders += blockIdx.x / tiles * live;
    int mine = 0;
    for (int r = 0; r < Each; r++) {
        const long long i = (tile * Each + r) * Threads + threadIdx.x;
        mine += __popc(__ballot_sync(EVERY_LANE, i < live && goes_left[orders[i]]));
    }
    if (threadIdx.x % WARP == 0) sums[threadIdx.x / WARP] = mine;
    __syncthreads();
    if (threadIdx.x) return;
    int total = 0;
    for (int w = 0; w < Threads / WARP; w++) total += sums[w];
    counts[blockIdx.x] = total;
}

// counts[t] = the sum of those before t; one block a coordinate, of Threads threads.
template <int Threads>
__global__ __launch_bounds__(Threads)
void before(int* counts, int tiles) {
    __shared__ int sums[Threads];
    counts += static_cast<long long>(blockIdx.x) * tiles;
    int base = 0;
    for (int start = 0; start < tiles; start += Threads) {
        const int t = start + threadIdx.x, own = t < tiles ? counts[t] : 0;
        sums[threadIdx.x] = own;
        __syncthreads();
        for (int distance = 1; distance < Threads; distance *= 2) {
            const int other = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
            __syncthreads();
            sums[threadIdx.x] += other;
            __syncthreads();
        }
        if (t < tiles) counts[t] = base + sums[threadIdx.x] - own;
        base += sums[Threads - 1];
        __syncthreads();
    }
}

// out: the orders of the next level. A point that goes left has all lefts of its cluster that stood before it before it.
// counts: of `before`; the other arguments as above
template <int Threads, int Each>
__global__ __launch_bounds__(Threads)
void part(const int* orders, const unsigned char* goes_left, const long long* first, const long long* lefts, long long live,
          int clusters, int tiles, const int* counts, int* out) {
    constexpr int WARPS = Threads / WARP;
    __shared__ int sums[WARPS];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const long long tile = blockIdx.x % tiles, shift = blockIdx.x / tiles * live;
    long long base = counts[blockIdx.x];
    for (int r = 0; r < Each; r++) {
        const long long i = (tile * Each + r) * Threads + threadIdx.x;
        const int point = i < live ? orders[shift + i] : 0;
        const bool left = i < live && goes_left[point];
        const unsigned lanes = __ballot_sync(EVERY_LANE, left);
        if (lane == 0) sums[warp] = __popc(lanes);
        __syncthreads();
        long long smaller = base + __popc(lanes & ((1u << lane) - 1));  // lefts before place i, of all clusters
        for (int w = 0; w < WARPS; w++) {
            if (w < warp) smaller += sums[w];
            base += sums[w];
        }
        if (i < live) {
            const int c = segment_of(first, clusters, i);
            const long long within = smaller - lefts[c];
            out[shift + (left ? first[c] + within : i + lefts[c + 1] - lefts[c] - within)] = point;
        }
        __syncthreads();
    }
}

// Clusters that are leaves leave: their points stand in the permutation from places[c] on; those of others move to
// target[c] of the new orders, of `stay` points.   target: −1 for leaves
__global__ void retire(const int* orders, const long long* first, const long long* places, const long long* target,
                       long long live, long long stay, int clusters, int dim, long long* permutation, int* out) {
    const long long i = own_number();
    if (i >= live) return;
    const int c = segment_of(first, clusters, i);
    const long long within = i - first[c];
    if (target[c] < 0) {
        permutation[places[c] + within] = orders[i];
        return;
    }
    for (int j = 0; j < dim; j++) out[j * stay + target[c] + within] = orders[j * live + i];
}

}  // namespace clustering
