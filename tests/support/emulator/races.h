// races.h — what two threads do to a word of dynamic shared memory with no barrier between, where one of them writes.
//
// Only where the compiler tells of every access: GCC's -fsanitize=thread, whose library these functions stand for. A thread knows up to
// what time of every other it has met that one, directly or through others, at barriers of a warp, of some warps or of the block;
// an access comes after another if its thread knows the other's time (vector clocks: Flanagan & Freund 2009, FastTrack). Shuffles,
// votes and reductions of a warp order nothing. Asynchronous copies write when they set out and when they have been awaited.
// Not here: static shared memory, and what ptxas makes of the code, such as accesses that it joins.
#pragma once

namespace emulator {
using Times = std::vector<int>;  // of every thread

#ifndef RACES
inline void watch(int) {}
inline void arrive(Times&) {}
inline void depart(const Times&) {}
inline void visit(const void*, std::size_t, bool, const void*) {}
#else

constexpr int WORD = 4;
struct Access { int thread = -1, time = 0; const void* code = nullptr; };
struct Word {
    Access written;
    std::vector<Access> read;  // the last of every thread since
};
inline std::vector<Word> words(MOST_SHARED / WORD);
inline std::vector<Times> met;  // by thread
inline bool watched = false;

// So many threads begin; none: they are through.
inline void watch(int count) {
    for (Word& word : words) word.written = {}, word.read.clear();
    met.assign(count, Times(count, 0)), watched = count > 0;
    for (int i = 0; i < count; i++) met[i][i] = 1;
}
inline void join(Times& to, const Times& from) {
    to.resize(met.size(), 0);
    for (std::size_t i = 0; i < from.size(); i++) to[i] = to[i] < from[i] ? from[i] : to[i];
}
// At a barrier of which all together know so much.
inline void arrive(Times& known) { join(known, met[current]), met[current][current]++; }
inline void depart(const Times& known) { join(met[current], known); }

// Where it stands in the library of the kernel, for addr2line.
inline std::string place(const void* code) {
    Dl_info library;
    char text[32] = "";
    if (dladdr(code, &library)) snprintf(text, sizeof text, " at %#zx", static_cast<const char*>(code) - static_cast<const char*>(library.dli_fbase));
    return text;
}
inline void check(const Access& before, const char* what, int word, const void* code) {
    if (before.thread < 0 || met[current][before.thread] >= before.time) return;
    fail("a race: byte " + std::to_string(word * WORD) + " of shared memory is " + what + place(code) + " beside thread " +
         std::to_string(before.thread) + place(before.code));
}
__attribute__((no_sanitize("thread"))) inline void visit(const void* address, std::size_t bytes, bool writes, const void* code) {
    const auto from = static_cast<const Bytes*>(address) - arena;
    if (!watched || from < 0 || from >= MOST_SHARED) return;
    for (int w = from / WORD; w <= static_cast<int>(from + bytes - 1) / WORD; w++) {
        Word& word = words[w];
        check(word.written, writes ? "written" : "read", w, code);
        if (writes)
            for (const Access& read : word.read) check(read, "written", w, code);
        const Access now = {current, met[current][current], code};
        if (writes) word.written = now, word.read.clear();
        else word.read.resize(met.size()), word.read[current] = now;
    }
}
#endif

}  // namespace emulator

#ifdef RACES
#define CALLED __attribute__((used, no_sanitize("thread"))) inline void
#define ACCESSES(bytes)                                                                                                      \
    CALLED __tsan_read##bytes(void* p) { emulator::visit(p, bytes, false, __builtin_return_address(0)); }                    \
    CALLED __tsan_write##bytes(void* p) { emulator::visit(p, bytes, true, __builtin_return_address(0)); }                    \
    CALLED __tsan_unaligned_read##bytes(void* p) { emulator::visit(p, bytes, false, __builtin_return_address(0)); }          \
    CALLED __tsan_unaligned_write##bytes(void* p) { emulator::visit(p, bytes, true, __builtin_return_address(0)); }
extern "C" {
ACCESSES(1) ACCESSES(2) ACCESSES(4) ACCESSES(8) ACCESSES(16)
CALLED __tsan_read_range(void* p, unsigned long bytes) { emulator::visit(p, bytes, false, __builtin_return_address(0)); }
CALLED __tsan_write_range(void* p, unsigned long bytes) { emulator::visit(p, bytes, true, __builtin_return_address(0)); }
CALLED __tsan_func_entry(void*) {}
CALLED __tsan_func_exit() {}
CALLED __tsan_init() {}
CALLED __tsan_vptr_update(void*, void*) {}
CALLED __tsan_vptr_read(void*) {}
}
#undef ACCESSES
#undef CALLED
#endif
