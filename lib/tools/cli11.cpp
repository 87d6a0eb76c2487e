// SPDX-License-Identifier: Apache-2.0
// CLI11 compiled once: with CLI11_COMPILE its headers hold declarations alone, which halves the
// time that each subcommand takes to compile.
#include <CLI/CLI.hpp>
#include <CLI/impl/App_inl.hpp>
#include <CLI/impl/Argv_inl.hpp>
#include <CLI/impl/Config_inl.hpp>
#include <CLI/impl/Encoding_inl.hpp>
#include <CLI/impl/Formatter_inl.hpp>
#include <CLI/impl/Option_inl.hpp>
#include <CLI/impl/Split_inl.hpp>
#include <CLI/impl/StringTools_inl.hpp>
#include <CLI/impl/Validators_inl.hpp>
#if __has_include(<CLI/impl/TypeTools_inl.hpp>)  // since 2.5
#include <CLI/impl/TypeTools_inl.hpp>
#endif
#if __has_include(<CLI/impl/ExtraValidators_inl.hpp>)  // since 2.6
#include <CLI/impl/ExtraValidators_inl.hpp>
#endif
