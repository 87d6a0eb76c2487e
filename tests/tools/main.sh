#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program's own options and its answer to a word it does not know.
set -u
vartml=$1
fail() { printf '%s\n' "$*" >&2; exit 1; }

"$vartml" --help | grep -q '^usage: vartml COMMAND' || fail '--help does not print the usage to standard output'
"$vartml" --version | grep -Eq '^vartml [0-9]+\.[0-9]+\.[0-9]+$' || fail '--version does not print one line'
"$vartml" >/dev/null 2>&1
[ $? = 2 ] || fail 'without a command the exit status is not 2'
said=$("$vartml" cook 2>&1)
[ $? = 2 ] || fail 'an unknown command does not exit with 2'
case $said in *"'cook' is not a command"*) ;; *) fail "an unknown command is not named: $said" ;; esac
"$vartml" --help >/dev/full 2>/dev/null
[ $? = 1 ] || fail 'a full disk behind standard output is not an error'
# A closed stream has no other file behind its number: text would go there, to the pipe of signals, say.
said=$("$vartml" --help 2>&1 <&- >&-)
[ $? = 1 ] || fail "a closed standard output is not an error: $said"
