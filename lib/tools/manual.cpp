// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/manual.h"

#include <algorithm>

#include <vartml/version.h>

namespace vartml::tools {
namespace {

std::string joined(std::span<const std::string> words, std::string_view between) {
    std::string text;
    for (const std::string& word : words) (text += text.empty() ? "" : between) += word;
    return text;
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
    for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + with.size()))
        text.replace(at, what.size(), with);
    return text;
}

// "auto|f32|bf16", of words of small letters, digits and signs.
std::vector<std::string> choices_of(std::string_view value) {
    if (value.find('|') == value.npos) return {};
    std::vector<std::string> words(1);
    for (const char c : value) {
        if (c == '|')
            words.emplace_back();
        else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')
            words.back() += c;
        else
            return {};
    }
    return words;
}

OptionText text_of(const CLI::Option& option) {
    OptionText o;
    o.is_positional = option.get_positional();
    o.is_required = option.get_required();
    o.text = option.get_description();
    if (o.is_positional) {
        o.names = {option.get_name(true, false)};
        return o;
    }
    for (const std::string& name : option.get_snames()) o.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) o.names.push_back("--" + name);
    o.value = option.get_type_name();
    o.initial = option.get_default_str();
    // "qaic|run [qaic]"
    if (const std::string& both = option.get_option_text(); !both.empty()) {
        const size_t bracket = both.find(" [");
        o.value = both.substr(0, bracket);
        if (bracket != both.npos) o.initial = both.substr(bracket + 2, both.size() - bracket - 3);
    }
    if (option.get_items_expected_max() == 0) o.value.clear();
    o.choices = choices_of(o.value);
    return o;
}

// ---- man
// ------------------------------------------------------------------------------------------

// Text of roff: no line begins a request, no backslash an escape, a hyphen stays one.
std::string roff(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool begins = out.empty() || out.back() == '\n';
        if (begins && (c == '.' || c == '\'')) out += "\\&";
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
    }
    return out;
}

std::string head(const std::string& name, const std::string& summary) {
    std::string upper = name;
    for (char& c : upper)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    return ".TH " + upper + " 1 \"\" \"gst\\-vartml " + std::string(version()) +
           "\" \"User Commands\"\n.SH NAME\n" + roff(name) + " \\- " + roff(summary) + "\n";
}

std::string man_option(const OptionText& o) {
    std::string text = ".TP\n";
    std::string names;
    for (const std::string& name : o.names)
        names += (names.empty() ? "" : ", ") + ("\\fB" + roff(name) + "\\fR");
    text += names + (o.value.empty() ? "" : " \\fI" + roff(o.value) + "\\fR") + '\n';
    return text + roff(o.text) + (o.initial.empty() ? "" : " [" + roff(o.initial) + "]") + '\n';
}

// ---- completions
// ----------------------------------------------------------------------------------

// In single quotes of a shell.
std::string in_quotes(const std::string& text) {
    return "'" + replaced(text, "'", "'\\''") + "'";
}

std::string names_of(const CommandText& command) {
    std::string words;
    for (const OptionText& o : command.options)
        if (!o.is_positional) words += (words.empty() ? "" : " ") + joined(o.names, " ");
    return words;
}

std::string names_of(std::span<const CommandText> commands) {
    std::string words;
    for (const CommandText& c : commands) words += (words.empty() ? "" : " ") + c.name;
    return words;
}

std::string bash(std::span<const CommandText> commands) {
    std::string text =
        "# bash completion of vartml, made by `vartml --completion bash`\n"
        "_vartml() {\n"
        "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words=\n"
        "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
        "        words='" +
        names_of(commands) +
        " help --help --version --completion --man'\n"
        "    elif [ \"${COMP_WORDS[1]}\" = help ] || [ \"${COMP_WORDS[1]}\" = --man ]; then\n"
        "        words='" +
        names_of(commands) +
        "'\n"
        "    else\n"
        "        case \"${COMP_WORDS[1]} $previous\" in\n"
        "            '--completion '*) words='bash zsh fish' ;;\n";
    for (const CommandText& c : commands)
        for (const OptionText& o : c.options) {
            if (o.choices.empty()) continue;
            std::string patterns;
            for (const std::string& name : o.names)
                patterns += (patterns.empty() ? "" : "|") + in_quotes(c.name + ' ' + name);
            text += "            " + patterns + ") words='" + joined(o.choices, " ") + "' ;;\n";
        }
    text +=
        "            *) case \"$current\" in\n"
        "                -*) case \"${COMP_WORDS[1]}\" in\n";
    for (const CommandText& c : commands)
        text += "                    " + c.name + ") words='" + names_of(c) + "' ;;\n";
    return text +
           "                esac ;;\n"
           "            esac ;;\n"
           "        esac\n"
           "    fi\n"
           "    COMPREPLY=()\n"
           "    [ -z \"$words\" ] || COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
           "}\n"
           "complete -o default -o bashdefault -F _vartml vartml\n";
}

// What stands in an argument of zsh's _arguments.
std::string zsh_text(std::string text) {
    for (const char* c : {"\\", "[", "]", ":"})
        text = replaced(std::move(text), c, "\\" + std::string(c));
    return text;
}

std::string zsh(std::span<const CommandText> commands) {
    std::string text =
        "#compdef vartml\n# zsh completion of vartml, made by `vartml --completion zsh`\n"
        "_vartml() {\n    local -a commands\n    commands=(\n";
    for (const CommandText& c : commands)
        text += "        " + in_quotes(c.name + ":" + zsh_text(c.summary)) + "\n";
    text +=
        "        'help:the options of a command'\n    )\n"
        "    if (( CURRENT == 2 )); then\n        _describe command commands\n        return\n"
        "    fi\n    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n"
        "    case $command in\n        help) _describe command commands ;;\n";
    for (const CommandText& c : commands) {
        text += "        " + c.name + ") _arguments";
        for (const OptionText& o : c.options) {
            if (o.is_positional) continue;
            for (const std::string& name : o.names) {
                std::string one = name + "[" + zsh_text(o.text) + "]";
                if (!o.value.empty())
                    one += ":" + zsh_text(o.value) + ":" +
                           (o.choices.empty() ? "_files" : "(" + joined(o.choices, " ") + ")");
                text += " \\\n            " + in_quotes(one);
            }
        }
        text += " \\\n            '*:file:_files' ;;\n";
    }
    return text + "    esac\n}\n_vartml \"$@\"\n";
}

std::string fish(std::span<const CommandText> commands) {
    std::string text = "# fish completion of vartml, made by `vartml --completion fish`\n";
    for (const CommandText& c : commands)
        text += "complete -c vartml -n __fish_use_subcommand -f -a " + c.name + " -d " +
                in_quotes(c.summary) + "\n";
    text +=
        "complete -c vartml -n __fish_use_subcommand -f -a help -d 'the options of a command'\n"
        "complete -c vartml -n '__fish_seen_subcommand_from help' -f -a " +
        in_quotes(names_of(commands)) + "\n";
    for (const CommandText& c : commands)
        for (const OptionText& o : c.options) {
            if (o.is_positional) continue;
            text += "complete -c vartml -n '__fish_seen_subcommand_from " + c.name + "'";
            for (const std::string& name : o.names)
                text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
            if (!o.choices.empty())
                text += " -x -a " + in_quotes(joined(o.choices, " "));
            else if (!o.value.empty())
                text += " -r";
            text += " -d " + in_quotes(o.text) + "\n";
        }
    return text;
}

}  // namespace

CommandText describe(const CLI::App& app) {
    CommandText command;
    command.about = app.get_description();
    command.footer = app.get_footer();
    for (const CLI::Option* option : app.get_options())
        if (!option->get_group().empty()) command.options.push_back(text_of(*option));
    return command;
}

std::string man_page(std::span<const CommandText> commands) {
    std::string text =
        head("vartml", "compile, run, measure and check models for NPUs") +
        ".SH SYNOPSIS\n\\fBvartml\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...]\n.SH COMMANDS\n";
    for (const CommandText& c : commands)
        text += ".TP\n\\fB" + roff(c.name) + "\\fR\n" + roff(c.summary) + "; see \\fBvartml\\-" +
                roff(c.name) + "\\fR(1)\n";
    return text +
           ".SH OPTIONS\n.TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nthe list of commands\n"
           ".TP\n\\fB\\-V\\fR, \\fB\\-\\-version\\fR\nversion of the program\n"
           ".TP\n\\fB\\-\\-completion\\fR \\fIbash|zsh|fish\\fR\na completion for the shell\n"
           ".TP\n\\fB\\-\\-man\\fR [\\fICOMMAND\\fR]\nthis page, or that of a command\n"
           ".SH ENVIRONMENT\n.TP\n\\fBVARTML_LOG\\fR\nERROR, WARNING, INFO or DEBUG: which lines "
           "go "
           "to standard error [WARNING]\n.TP\n\\fBNO_COLOR\\fR\nset: no colours on a terminal\n";
}

std::string man_page(const CommandText& c) {
    std::string positionals, arguments, options;
    for (const OptionText& o : c.options) {
        if (o.is_positional)
            positionals += " " + std::string(o.is_required ? "" : "[") + "\\fI" + roff(o.names[0]) +
                           "\\fR" + (o.is_required ? "" : "]");
        (o.is_positional ? arguments : options) += man_option(o);
    }
    std::string text = head("vartml-" + c.name, c.summary) + ".SH SYNOPSIS\n\\fBvartml " +
                       roff(c.name) + "\\fR [\\fIOPTION\\fR...]" + positionals +
                       "\n.SH DESCRIPTION\n" + roff(c.about) + '\n';
    if (!arguments.empty()) text += ".SH ARGUMENTS\n" + arguments;
    if (!options.empty()) text += ".SH OPTIONS\n" + options;
    if (!c.footer.empty()) text += ".SH NOTES\n.nf\n" + roff(c.footer) + "\n.fi\n";
    return text + ".SH SEE ALSO\n\\fBvartml\\fR(1)\n";
}

std::string completion(std::string_view shell, std::span<const CommandText> commands) {
    if (shell == "bash") return bash(commands);
    if (shell == "zsh") return zsh(commands);
    if (shell == "fish") return fish(commands);
    return {};
}

}  // namespace vartml::tools
