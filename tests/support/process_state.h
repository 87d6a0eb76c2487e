// SPDX-License-Identifier: Apache-2.0
// What the system holds for this process: descriptors, threads, mappings, memory.
#pragma once
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace vartml::test {

inline size_t entries_of(const char* folder) {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}
inline size_t open_descriptors() {
    return entries_of("/proc/self/fd");
}
inline size_t running_threads() {
    return entries_of("/proc/self/task");
}
// Mappings of files and of shared memory; the heap and stacks come and go with the C library.
inline size_t mapped_files() {
    std::ifstream maps("/proc/self/maps");
    size_t count = 0;
    for (std::string line; std::getline(maps, line);)
        if (line.find('/') != std::string::npos) ++count;
    return count;
}
inline size_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    size_t all = 0, resident = 0;
    statm >> all >> resident;
    return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// A number from the environment, for runs that are too long for every day.
inline size_t number_from(const char* variable, size_t usual) {
    const char* const text = std::getenv(variable);
    return text ? std::stoul(text) : usual;
}

}  // namespace vartml::test
