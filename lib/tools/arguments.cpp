// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/arguments.h"

#include <cstdio>
#include <string>

#include "lib/tools/commands.h"

namespace vartml::tools {

std::optional<int> parse_arguments(CLI::App& app, int argc, const char* const* argv) {
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        std::fputs(app.help().c_str(), stdout);
        return exit_done;
    } catch (const CLI::ParseError& e) {
        const std::string name = app.get_name();
        print_error({ErrorCode::invalid_argument, name.substr(name.rfind(' ') + 1) + ": " +
                                                      e.what() + "; see " + name + " --help"});
        return exit_usage;
    }
    return std::nullopt;
}

}  // namespace vartml::tools
