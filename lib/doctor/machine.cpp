// SPDX-License-Identifier: Apache-2.0
#include "lib/doctor/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace vartml::doctor {
namespace {

// The text after `key`, blanks and a colon, of the first such line; "" where there is none.
std::string value_of(const char* file, const std::string& key) {
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) {
        const size_t colon = line.find(':');
        if (!line.starts_with(key) || colon == line.npos) continue;
        const size_t begin = line.find_first_not_of(" \t", colon + 1);
        return begin == line.npos ? std::string() : line.substr(begin);
    }
    return {};
}

}  // namespace

std::string processor_model() {
    std::string name = value_of("/proc/cpuinfo", "model name");
    utsname system{};
    if (name.empty() && uname(&system) == 0) name = system.machine;
    return name;
}

std::string own_program() {
    char path[4096];
    const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
    return length > 0 ? std::string(path, static_cast<size_t>(length)) : std::string("vartml");
}

uint64_t available_memory_bytes() {
    return std::strtoull(value_of("/proc/meminfo", "MemAvailable").c_str(), nullptr, 10) * 1024;
}

}  // namespace vartml::doctor
