// emulator.h — one block of CUDA threads after another on the CPU: each thread a fiber, which runs until it waits for others.
//
// For small cases of kernels where there is no GPU; the texts of kernels/ are compiled as they are, but for `asm` (ptx.h) and
// shared memory (translate.py). Warps run in an order of chance, a warp's lanes one after another, forwards or backwards, up to
// the next exchange or barrier: what is missing there shows as wrong numbers in some order. Dynamic shared memory begins as
// NaN, nothing may be written behind it, asynchronous copies arrive no earlier than they are waited for, and what waits
// forever is told; with RACES set, so is every race (races.h), whatever the order.
// Not here: clusters, what two blocks tell each other, time.
#pragma once
#include <dlfcn.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#define __CUDA_ARCH__ 900
#define __device__
#define __host__
#define __global__
#define __constant__
#define __shared__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __restrict__

using std::copysign, std::exp, std::exp2, std::fma, std::fmax, std::fmin, std::frexp, std::hypot, std::isfinite, std::isnan;
using std::log, std::log1p, std::memcpy, std::scalbn, std::sqrt;

struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct Dimensions { int x = 0, y = 0, z = 0; };
inline Dimensions threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

constexpr int LANES = 32, STACK = 128 << 10, SLOT = 128, CANARY = 4 << 10, MOST_SHARED = 227 << 10;
using Bytes = unsigned char;

// Switches stacks: keeps the present one's place in *from and goes on where `to` was left.
extern "C" void emulator_switch(void** from, void* to);
asm(R"(
.text
.local emulator_switch
emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");

struct Copy { Bytes* to; const Bytes* from; int bytes, whole; };

struct Thread {
    void* place = nullptr;
    std::vector<Bytes> stack;
    bool runs = false;
    std::vector<Copy> open;                  // asynchronous copies set out
    std::vector<std::vector<Copy>> groups;   // and closed
};

// Where threads meet; what they bring lies in a half of `slots` until those have met who meet there next but one.
struct Barrier {
    unsigned turn = 0;
    int arrived = 0;
    int any[2] = {0, 0};
    unsigned present[2] = {0, 0};  // lanes
    Bytes slots[2][LANES][SLOT];
    std::vector<int> known[2];  // see races.h
};

inline std::vector<Thread> threads;
inline std::vector<std::map<unsigned, Barrier>> warps;  // barriers of a warp by the lanes that meet
inline std::vector<unsigned> alive;                     // lanes of a warp that have not returned
inline std::map<int, Barrier> named;                    // barriers of a block by their number
inline int current, running;                            // thread; those of the block that have not returned
inline long long progress;                              // barriers passed and threads that have returned
inline void* scheduler;
inline std::string failure;
alignas(1024) inline Bytes arena[MOST_SHARED + CANARY];  // dynamic shared memory; the static lies near, too
inline std::mt19937 chance(1);
inline void (*body)(void*);
inline void* argument;

inline Bytes* shared_memory() { return arena; }
inline void pause() { emulator_switch(&threads[current].place, scheduler); }
inline std::string in_block(const std::string& what) { return what + " (block " + std::to_string(blockIdx.x) + ")"; }
[[noreturn]] inline void fail(const std::string& what) {
    failure = in_block(what + ", thread " + std::to_string(current));
    for (;;) pause();
}

}  // namespace emulator
#include "races.h"
namespace emulator {

inline void pass(Barrier& barrier) {
    const int next = ++barrier.turn % 2;
    barrier.arrived = barrier.any[next] = barrier.present[next] = 0, barrier.known[next].clear(), progress++;
}

// Waits until `all` threads are here; which half of the slots was theirs.
template <typename Count>
int meet(Barrier& barrier, Count all) {
    const unsigned turn = barrier.turn;
    if (++barrier.arrived >= all()) pass(barrier);
    while (barrier.turn == turn) {
        pause();
        if (barrier.turn == turn && barrier.arrived >= all()) pass(barrier);  // others have returned meanwhile
    }
    return turn % 2;
}

inline int lane() { return current % LANES; }
inline Barrier& of_warp(unsigned lanes) {
    if (!(lanes >> lane() & 1)) fail("a lane waits for others that do not wait for it");
    return warps[current / LANES][lanes];
}
inline int meet_lanes(Barrier& barrier, unsigned lanes) {
    const int warp = current / LANES;
    return meet(barrier, [=] { return __builtin_popcount(lanes & alive[warp]); });
}

// What every lane brings, until the same lanes have met twice more, and who brings something.
template <typename T>
std::pair<const T*, unsigned> exchanged(unsigned lanes, const T& own) {
    static_assert(sizeof(T) <= SLOT && SLOT % sizeof(T) == 0 && std::is_trivially_copyable_v<T>);
    Barrier& barrier = of_warp(lanes);
    auto slots = reinterpret_cast<T*>(barrier.slots[barrier.turn % 2]);
    slots[lane()] = own;
    barrier.present[barrier.turn % 2] |= 1u << lane();
    const int half = meet_lanes(barrier, lanes);
    return {reinterpret_cast<const T*>(barrier.slots[half]), barrier.present[half]};
}
template <typename T, typename Combine>
T reduced(unsigned lanes, T x, Combine combine) {
    const auto [all, there] = exchanged(lanes, x);
    for (int l = 0; l < LANES; l++)
        if (there >> l & 1 && l != lane()) x = combine(x, all[l]);
    return x;
}

// The same, and what any of them did before comes before what any does afterwards.
template <typename Meet>
int in_order(Barrier& barrier, Meet wait) {
    arrive(barrier.known[barrier.turn % 2]);
    const int half = wait();
    return depart(barrier.known[half]), half;
}
inline void meet_warp(unsigned lanes) {
    Barrier& barrier = of_warp(lanes);
    in_order(barrier, [&] { return meet_lanes(barrier, lanes); });
}
inline int meet_block(int predicate = 0) {
    Barrier& barrier = named[0];
    barrier.any[barrier.turn % 2] |= predicate;
    return barrier.any[in_order(barrier, [&] { return meet(barrier, [] { return running; }); })];
}
inline void meet_some(int number, int count) {
    in_order(named[number], [=] { return meet(named[number], [=] { return count; }); });
}

inline void set_out(void* to, const void* from, int bytes, int whole) {
    const auto target = static_cast<Bytes*>(to);
    if (reinterpret_cast<std::uintptr_t>(to) % whole || (bytes && reinterpret_cast<std::uintptr_t>(from) % whole)) fail("a copy is misaligned");
    threads[current].open.push_back({target, static_cast<const Bytes*>(from), bytes, whole});
    visit(to, whole, true, __builtin_return_address(0));
}
inline void close_group() { threads[current].groups.push_back(std::exchange(threads[current].open, {})); }
inline void await_groups(int pending) {
    auto& groups = threads[current].groups;
    while (static_cast<int>(groups.size()) > pending) {
        for (const Copy& copy : groups.front()) {
            std::memcpy(copy.to, copy.from, copy.bytes);
            std::memset(copy.to + copy.bytes, 0, copy.whole - copy.bytes);
            visit(copy.to, copy.whole, true, __builtin_return_address(0));
        }
        groups.erase(groups.begin());
    }
}

inline void begin() {
    body(argument);
    threads[current].runs = false, running--, progress++;
    alive[current / LANES] &= ~(1u << lane());
    for (;;) pause();
}

// Threads in turns, whole warps, until all have returned or one fails.
inline void run_block(int count) {
    const int warp_count = (count + LANES - 1) / LANES;
    if (static_cast<int>(threads.size()) < count) threads.resize(count);
    warps.assign(warp_count, {}), alive.assign(warp_count, 0), named.clear(), running = count;
    for (int i = 0; i < count; i++) {
        Thread& thread = threads[i];
        thread.stack.resize(STACK), thread.open.clear(), thread.groups.clear(), thread.runs = true, alive[i / LANES] |= 1u << i % LANES;
        auto top = reinterpret_cast<void**>(reinterpret_cast<std::uintptr_t>(thread.stack.data() + STACK) / 16 * 16) - 1;
        *top = nullptr, *--top = reinterpret_cast<void*>(begin);
        thread.place = top - 6;  // registers that a switch restores
    }
    long long before = progress;
    for (int idle = 0; running > 0 && failure.empty();) {
        const int warp = chance() % warp_count;
        const bool backwards = chance() % 2;
        for (int l = 0; l < LANES && failure.empty(); l++) {
            const int i = warp * LANES + (backwards ? LANES - 1 - l : l);
            if (i >= count || !threads[i].runs) continue;
            current = i, threadIdx.x = i;
            emulator_switch(&scheduler, threads[i].place);
        }
        idle = progress == before ? idle + 1 : 0, before = progress;
        if (idle > 64 * warp_count + 1000 && failure.empty()) failure = in_block("threads wait for each other forever");
    }
}

template <typename... Parameters>
const char* launch(void (*kernel)(Parameters...), void** values, int blocks, int count, int shared_bytes) {
    static void (*called)(Parameters...);
    called = kernel, argument = values, failure.clear();
    body = [](void* given) {
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            called(*reinterpret_cast<std::remove_reference_t<Parameters>*>(static_cast<void**>(given)[I])...);
        }(std::index_sequence_for<Parameters...>());
    };
    gridDim.x = blocks, blockDim.x = count;
    for (int block = 0; block < blocks && failure.empty(); block++) {
        blockIdx.x = block;
        std::memset(shared_memory(), 0xff, MOST_SHARED + CANARY);
        watch(count);
        run_block(count);
        watch(0);
        for (int i = shared_bytes; i < MOST_SHARED + CANARY && failure.empty(); i++)
            if (shared_memory()[i] != 0xff) failure = in_block("written behind " + std::to_string(shared_bytes) + " bytes of shared memory");
    }
    return failure.empty() ? nullptr : failure.c_str();
}

}  // namespace emulator

// CUDA's functions that kernels/ calls

template <typename A, typename B> constexpr auto min(A a, B b) { return b < a ? b : a; }
template <typename A, typename B> constexpr auto max(A a, B b) { return a < b ? b : a; }

inline void __syncthreads() { emulator::meet_block(); }
inline int __syncthreads_or(int x) { return emulator::meet_block(x != 0); }
inline int __syncthreads_and(int x) { return !emulator::meet_block(x == 0); }
inline void __syncwarp(unsigned lanes = ~0u) { emulator::meet_warp(lanes); }
template <typename T>
T __shfl_sync(unsigned lanes, T x, int from, int width = 32) {
    return emulator::exchanged(lanes, x).first[emulator::lane() / width * width + (from & (width - 1))];
}
template <typename T>
T __shfl_xor_sync(unsigned lanes, T x, int distance, int = 32) { return emulator::exchanged(lanes, x).first[emulator::lane() ^ distance]; }
template <typename T>
T __reduce_max_sync(unsigned lanes, T x) { return emulator::reduced(lanes, x, [](T a, T b) { return a < b ? b : a; }); }
template <typename T>
T __reduce_min_sync(unsigned lanes, T x) { return emulator::reduced(lanes, x, [](T a, T b) { return b < a ? b : a; }); }
inline unsigned __ballot_sync(unsigned lanes, int x) {
    return emulator::reduced(lanes, unsigned(x != 0) << emulator::lane(), [](unsigned a, unsigned b) { return a | b; });
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __any_sync(unsigned lanes, int x) { return __ballot_sync(lanes, x) != 0; }
inline void __threadfence() {}

template <typename To, typename From>
To emulator_bits(From x) {
    static_assert(sizeof(To) == sizeof(From));
    To y;
    std::memcpy(&y, &x, sizeof y);
    return y;
}
inline int __float_as_int(float x) { return emulator_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return emulator_bits<unsigned>(x); }
inline float __int_as_float(int x) { return emulator_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return emulator_bits<float>(x); }
inline double __longlong_as_double(long long x) { return emulator_bits<double>(x); }
inline int __double2hiint(double x) { return static_cast<int>(emulator_bits<long long>(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(emulator_bits<long long>(x)); }
inline double __hiloint2double(int high, int low) {
    const unsigned long long upper = static_cast<unsigned>(high);
    return emulator_bits<double>(upper << 32 | static_cast<unsigned>(low));
}
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline double cospi(double x) { return std::cos(M_PI * x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32); }
template <typename T> T __ldg(const T* from) { return *from; }
template <typename T> T __ldcs(const T* from) { return *from; }
template <typename T> T __ldcg(const T* from) { return *from; }
template <typename T> void __stcg(T* to, T x) { *to = x; }
template <typename T> T atomicMax(T* at, std::type_identity_t<T> x) { return std::exchange(*at, *at < x ? x : *at); }
template <typename T> T atomicMin(T* at, std::type_identity_t<T> x) { return std::exchange(*at, x < *at ? x : *at); }
inline long long clock64() { return 0; }
template <typename T>
std::size_t __cvta_generic_to_shared(const T* place) { return reinterpret_cast<const emulator::Bytes*>(place) - emulator::shared_memory(); }
