#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What people do with the packages, from installing to purging; as root in a new Debian 13 root that has them in /try.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
cd /try

step() { printf 'package test: %s\n' "$*"; }
fail() { step "failed: $*"; exit 1; }
get() { apt-get -qq -o Dpkg::Use-Pty=0 --no-install-recommends install "$@" >log 2>&1 || { cat log; fail "apt-get install $*"; }; }
as_user() { setpriv --reuid 1000 --regid 1000 --clear-groups env -C /home/user HOME=/home/user "$@" 2>&1; }
take_away() { dpkg-query -W -f '${Package}\n' | grep -xFf names | xargs apt-get -qq "$1" >log 2>&1 || { cat log; fail "apt-get $1"; }; }

# Everything but what belongs to apt, to the user and to this test.
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /try -o -path /home -o -path /var/cache/apt \
        -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/log \) -prune -o -print | sort
}

use_as_user() {
    [ "$(as_user vartml --version)" = "vartml ${version%%~*}" ] || fail "vartml --version says $(as_user vartml --version)"
    as_user vartml detect /try/qrfinder.onnx code.png -o drawn.png >found || { cat found; fail "vartml detect"; }
    grep -q '^ *qr' found || { cat found; fail "vartml detect finds no code"; }
    for element in vartmlsrc vartmlinfer vartmldecode vartmlpicture vartmltrack vartmlgallery vartmlzones vartmlroi vartmlmetajoin vartmloverlay vartmlpublish; do
        as_user gst-inspect-1.0 "$element" >log || { cat log; fail "gst-inspect-1.0 $element"; }
    done
    as_user gst-launch-1.0 -q filesrc location=code.png ! decodebin ! videoconvert ! vartmlinfer model=/try/qrfinder.onnx ! \
        vartmldecode ! vartmloverlay ! fakesink >log || { cat log; fail "gst-launch-1.0"; }
    as_user vartml doctor >log || { cat log; fail "vartml doctor"; }
}

rm -f ./*-dbgsym_*.deb
version=$(dpkg-deb -f vartml_*.deb Version)
install -d -o 1000 -g 1000 /home/user

step "the library, the program and the plugins on a new system, without what is recommended"
get gstreamer1.0-tools gstreamer1.0-plugins-good qrencode
as_user qrencode -s 4 -m 20 -o code.png 'one code on white'
get ./libvartml1_*.deb ./libvartml-runtime1_*.deb ./libgstvartml-1.0-0_*.deb ./vartml_*.deb ./gstreamer1.0-vartml_*.deb
use_as_user
cat found

step "the programs of the README, with what it says that they want"
get ./vartml-demo_*.deb python3-gi gir1.2-gst-plugins-bad-1.0
awk '/^```$/ {out = ""} out {print > out} /^```sh$/ {out = "readme" ++n ".sh"}' README.md
as_user mkdir -p pipelines/models/qrfinder
as_user cp /try/qrfinder.onnx pipelines/models/qrfinder/
as_user sh -e /try/readme1.sh >log || { cat log; fail "the README's program in Python"; }
grep -q ' qr-code 0' log || { cat log; fail "the README's program in Python finds no code"; }
# The headers without the 850 MB that their package needs beside them.
get g++ pkgconf libgstreamer-plugins-base1.0-dev
apt-get -qq download libgstreamer-plugins-bad1.0-dev
dpkg-deb -x libgstreamer-plugins-bad1.0-dev_*.deb /
rm libgstreamer-plugins-bad1.0-dev_*.deb
as_user sh -e /try/readme2.sh >log || { cat log; fail "the README's program in C++"; }
grep -q 'qr-code 0' log || { cat log; fail "the README's program in C++ finds no code"; }
rm readme*.sh

step "upgrade of all packages from an earlier version"
apt-get -s --no-install-recommends install ./*.deb g++ libgstreamer-plugins-base1.0-dev pkgconf python3-gi | sed -n 's/^Inst \([^ ]*\) .*/\1/p' >needed
for file in ./*.deb; do dpkg-deb -f "$file" Package; done >names
grep -vxFf names needed >foreign || true
take_away purge
mapfile -t foreign <foreign
get "${foreign[@]}"
files >before
mkdir earlier
for file in ./*.deb; do
    dpkg-deb -R "$file" unpacked
    sed -i "s/^\(Version: \).*/\1$version~earlier/; s/(\(>*=\) $version)/(\1 $version~earlier)/g" unpacked/DEBIAN/control
    dpkg-deb -Znone -b unpacked "earlier/$(basename "$file")" >/dev/null
    rm -r unpacked
done
get ./earlier/*.deb
[ "$(dpkg-query -W -f '${Version}' vartml)" = "$version~earlier" ] || fail "the earlier version is not installed"
get ./*.deb
for name in $(cat names); do
    [ "$(dpkg-query -W -f '${Version}' "$name")" = "$version" ] || fail "$name was not upgraded"
done
use_as_user

step "applications build with what libvartml-dev installs"
apps=/usr/share/doc/gst-vartml-doc/examples/apps
as_user sh -ec "
    g++ -std=c++17 -O2 $apps/infer-sync/main.cpp -o infer \$(pkg-config --cflags --libs vartml)
    gcc $apps/read-metadata/main.c -o read-metadata \$(pkg-config --cflags --libs gstreamer-app-1.0 gstreamer-vartml-1.0)
    vartml compile -q /try/qrfinder.onnx -o qrfinder.rai
    ./infer qrfinder.rai
    ./read-metadata qrfinder.rai
    python3 $apps/read-metadata/read_metadata.py qrfinder.rai" >log || { cat log; fail "applications"; }
tail -n 3 log

step "the demonstration"
as_user vartml-demo --seconds 1 --out demo >log || { cat log; fail "vartml-demo"; }
grep 'codes found' log

step "removing and purging leave no trace"
take_away remove
dpkg-query -W -f '${Package} ${db:Status-Abbrev}\n' '*vartml*' 2>/dev/null | grep ' rc' && fail "packages left configuration behind"
xargs dpkg --purge <names >log 2>&1 || { cat log; fail "dpkg --purge"; }
files >after
diff before after || fail "files above"
ls /var/lib/dpkg/info | grep vartml && fail "dpkg still knows the packages above"
step "passed"
