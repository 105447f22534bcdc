// U_b diag(s_b) Vt_b = A_b for matrices that fit in shared memory: one thread block a matrix, all stages in one launch.
//
// QR runs in registers (svd/block/register_stages.cuh) up to 32·DotRows rows, in shared memory (svd/block/svd_stages.cuh) for taller
// matrices; the sweeps end, for each matrix on its own, when one has turned nothing.
// Traffic of device memory: A once, the results once, the reflectors twice (through the second-level cache).
//     A  matrices × m × n     U  matrices × m × k     s  matrices × k     Vt  matrices × k × n     (or as the table says)
//     info   matrices: sweeps, or a Failure     worst   the least of 0 and all failures
// Matrices of rank at most `above` or more than `upto` are left to other launches.
#pragma once

#include "svd/block/register_stages.cuh"

namespace svd {

constexpr int MOST_COLUMN_BYTES = 512;                    // of a lane's registers, for the columns of a QR

// Resident: blocks that a multiprocessor shall hold, which decides on the registers of a thread
template <typename Real, int DotRows, bool Both, int Columns, int Warps, int Resident>
__global__ __launch_bounds__(Warps * WARP, Resident)
void svd_shared(const Real* A, Real* U, Real* s, Real* Vt, int* info, int* worst, const long long* table, int m, int n,
                int vectors, int sweeps, int above, int upto) {
    constexpr int SLOTS = WARP * DotRows / Warps;
    constexpr bool ROOM = SLOTS * DotRows * int(sizeof(Real)) <= MOST_COLUMN_BYTES;
    extern __shared__ double memory[];
    __shared__ Angle<Real> angles[Warps * Columns];
    __shared__ Exchange<Real, DotRows, ROOM ? SLOTS : 1, Warps> exchange;
    Problem<Real> p = problem(A, U, s, Vt, table, m, n, blockIdx.x);
    if (p.rank() <= above || p.rank() > upto) return;
    Vectors wanted = static_cast<Vectors>(vectors);
    Workspace<Real> w = workspace<Real>(memory, p.longer(), p.rank(), Both);
    bool in_registers = ROOM && p.longer() <= WARP * DotRows, finite;
    if constexpr (ROOM) finite = in_registers ? prepare_in_registers(p, w, wanted, exchange) : prepare(p, w, wanted);
    else finite = prepare(p, w, wanted);
    Vectors failing = Both ? BOTH_VECTORS : wanted;
    if (!finite) return fail(p, failing, NOT_FINITE, info, worst);
    int r = *w.rank, blocks = even_blocks<Columns>(r);
    Panel<Real> panel = {w.W, w.ld, r, p.rank(), r, w.norms};
    int sweep = 0;
    bool turned = r > 1;
    while (turned && sweep < sweeps) {
        turned = jacobi_sweep<Both ? 2 * DotRows : DotRows, DotRows, Columns>(panel, blocks, angles,
                                                                              orthogonality_tolerance<Real>(r), false);
        sweep++;
    }
    if (turned) return fail(p, failing, NOT_CONVERGED, info, worst);
    if (!in_registers) {
        finish(p, w, wanted);
    } else if constexpr (ROOM) {
        finish_in_registers(p, w, wanted, exchange);
    }
    if (threadIdx.x == 0) info[p.index] = sweep;
}

}  // namespace svd
