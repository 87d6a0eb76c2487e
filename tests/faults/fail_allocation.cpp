// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program: its n-th allocation fails. Counted are those of operator new and of our
// own code, from the first time that a file with a given word in its path is opened.
//   VARTML_FAIL_FROM=WORD      where counting begins: what is before belongs to the loader and to
//   options VARTML_FAIL_AT=N           the N-th fails, once; absent: none VARTML_FAIL_REPORT=FILE
//   how many were counted, and the frames of the one that failed, an object and an offset per line
// Not counted: what GLib allocates, which ends the process by design when there is no memory; what
// a library that is being loaded allocates, whose constructors cannot report anything. This file
// defines what these would give other names to.
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

struct Range {
    uintptr_t begin, end;
};
std::array<Range, 64> uncounted;
size_t num_uncounted = 0;
std::atomic<bool> is_counting{false};
std::atomic<long> count{0};
long fail_at = -1;
const char* from = nullptr;
const char* report = nullptr;
// No thread-local storage that is allocated at its first use.
__attribute__((tls_model("initial-exec"))) thread_local int num_loads = 0;

int note_object(dl_phdr_info* info, size_t, void*) {
    for (const char* name : {"libglib", "libgobject", "ld-linux", "libc.so", "libgcc_s"}) {
        if (!std::strstr(info->dlpi_name, name)) continue;
        for (int i = 0; i < info->dlpi_phnum && num_uncounted < uncounted.size(); ++i) {
            const auto& part = info->dlpi_phdr[i];
            if (part.p_type != PT_LOAD) continue;
            const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
            uncounted[num_uncounted++] = {begin, begin + part.p_memsz};
        }
    }
    return 0;
}

void write_report(void** frames, int num_frames) {
    const int file = open(report, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0) return;
    dprintf(file, "%ld\n", count.load());
    for (int i = 0; i < num_frames; ++i) {
        Dl_info where{};
        if (dladdr(frames[i], &where) && where.dli_fname)
            dprintf(file, "%s %#tx\n", where.dli_fname,
                    static_cast<char*>(frames[i]) - static_cast<char*>(where.dli_fbase));
    }
    close(file);
}

bool fails(const void* caller) {
    if (!is_counting.load(std::memory_order_relaxed) || num_loads > 0) return false;
    const auto address = reinterpret_cast<uintptr_t>(caller);
    for (size_t i = 0; i < num_uncounted; ++i)
        if (address >= uncounted[i].begin && address < uncounted[i].end) return false;
    if (++count != fail_at) return false;
    if (report) {
        is_counting = false;
        std::array<void*, 64> frames;
        write_report(frames.data(), backtrace(frames.data(), frames.size()));
        is_counting = true;
    }
    errno = ENOMEM;
    return true;
}

void see(const char* path) {
    if (from && path && !is_counting && std::strstr(path, from)) is_counting = true;
}

__attribute__((constructor)) void begin() {
    from = std::getenv("VARTML_FAIL_FROM");
    report = std::getenv("VARTML_FAIL_REPORT");
    if (const char* n = std::getenv("VARTML_FAIL_AT")) fail_at = std::atol(n);
    unsetenv("LD_PRELOAD");  // what the program starts is left alone
    std::array<void*, 2> frames;
    backtrace(frames.data(), frames.size());  // loads what it needs now
    dl_iterate_phdr(note_object, nullptr);
}

__attribute__((destructor)) void end() {
    is_counting = false;
    if (report && count.load() < fail_at) write_report(nullptr, 0);
    if (report && fail_at < 0) write_report(nullptr, 0);
}

template <typename F>
F real(F, const char* name) {
    return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

mode_t mode_of(int flags, va_list more) {
    return flags & (O_CREAT | O_TMPFILE) ? static_cast<mode_t>(va_arg(more, int)) : 0;
}

}  // namespace

#define CALLER __builtin_return_address(0)

extern "C" {

void* malloc(size_t n) {
    return fails(CALLER) ? nullptr : __libc_malloc(n);
}
void* calloc(size_t n, size_t size) {
    return fails(CALLER) ? nullptr : __libc_calloc(n, size);
}
void* realloc(void* p, size_t n) {
    return fails(CALLER) ? nullptr : __libc_realloc(p, n);
}
void* aligned_alloc(size_t alignment, size_t n) {
    return fails(CALLER) ? nullptr : __libc_memalign(alignment, n);
}
int posix_memalign(void** p, size_t alignment, size_t n) {
    if (fails(CALLER)) return ENOMEM;
    *p = __libc_memalign(alignment, n);
    return *p ? 0 : ENOMEM;
}

void* dlopen(const char* file, int mode) {
    static const auto next = real(&dlopen, "dlopen");
    ++num_loads;
    void* const result = next(file, mode);
    --num_loads;
    return result;
}

int open(const char* path, int flags, ...) {
    static const auto next = real(&open, "open");
    see(path);
    va_list more;
    va_start(more, flags);
    const mode_t mode = mode_of(flags, more);
    va_end(more);
    return next(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
    static const auto next = real(&open64, "open64");
    see(path);
    va_list more;
    va_start(more, flags);
    const mode_t mode = mode_of(flags, more);
    va_end(more);
    return next(path, flags, mode);
}
FILE* fopen64(const char* path, const char* mode) {
    static const auto next = real(&fopen64, "fopen64");
    see(path);
    return next(path, mode);
}

}  // extern "C"
