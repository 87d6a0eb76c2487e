# SPDX-License-Identifier: Apache-2.0
# The job `./dev package`, which ./dev reads: the Debian packages of this machine's architecture, or of ARCH, and an image, in
# out/packages. They are built from the files that git knows, at one path and with the date of the changelog, so that the bytes are
# the same anywhere.

PACKAGES_OUT=$PROJECT/out/packages${ARCH:+-$ARCH}
# Beside what debian/control asks for. The library is that of the -dev package that is unpacked, not installed.
PACKAGING_TOOLS=(abigail-tools appstream build-essential ccache lintian libgstreamer-plugins-bad1.0-0 umoci)
# Of ours in the image, and what decodes, encodes and starts pipelines.
IMAGE_PACKAGES=(libvartml1 libvartml-runtime1 libgstvartml-1.0-0 vartml gstreamer1.0-vartml vartml-demo)
IMAGE_INCLUDES=gstreamer1.0-tools,gstreamer1.0-plugins-good,gstreamer1.0-plugins-bad,gstreamer1.0-plugins-ugly,gstreamer1.0-libav

run_package() {
    local test=
    case "$*" in
        '') ;;
        --describe) [ -z "$ARCH" ] || die "package --describe: interfaces are kept of this machine's processor; run it without --arch" ;;
        --test) test=1 ;;
        *) die "package: '$*' is unknown; the options are --test and --describe" ;;
    esac
    [ -z "${VARTML_DEV_INSIDE:-}" ] || die "package: makes a root of its own; run it outside of ./dev shell"
    local ROOT needs
    mapfile -t needs < <(build_depends)
    needs+=("${PACKAGING_TOOLS[@]}")
    [ -z "$ARCH" ] || mapfile -t needs < <(of_arch "${needs[@]}")
    ensure_root "${needs[@]}"
    if [ "$*" = --describe ]; then
        interfaces describe
        return
    fi
    build_packages "$PACKAGES_OUT"
    [ -z "$test" ] || test_packages
    long_step "making the image" build_image
    [ -z "$test" ] || try_image
    (cd "$PACKAGES_OUT" && ls -sh1 --hide='*-dbgsym_*' | grep -E '[.](deb|tar)$')
}

build_depends() {
    sed -n '/^Build-Depends:/,/^$/{s/^Build-Depends://; s/ *(.*//; s/[, ]//g; /./p}' "$PROJECT/packaging/debian/control" |
        sed "s/^debhelper-compat$/debhelper/; /^${UNPACKED%:*}$/d"
}

changelog_date() { date -d "$(sed -n 's/^ -- .*>  //p' "$PROJECT/packaging/debian/changelog" | head -n 1)" +%s; }

in_package_root() { # folder that is /mnt/build, command...
    local work=$1
    shift
    mkdir -p "$CACHE/ccache"
    bwrap "${EMULATED[@]}" --ro-bind "$ROOT" / --proc /proc --dev /dev --perms 1777 --tmpfs /dev/shm --perms 1777 --tmpfs /tmp --tmpfs /mnt \
        --bind "$work" /mnt/build --bind "$CACHE/ccache" /mnt/ccache --unshare-pid --unshare-net --die-with-parent \
        --chdir /mnt/build --setenv PATH /usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin -- \
        env LANG=C.UTF-8 LC_ALL=C.UTF-8 CCACHE_DIR=/mnt/ccache "${EMULATE[@]}" "$@"
}

build_packages() { # folder
    local out=$1 work=$1.tmp
    rm -rf "$work"
    mkdir -p "$work/source"
    git -C "$PROJECT" ls-files -z |
        tar -c -C "$PROJECT" --null -T - --mtime="@$(changelog_date)" --mode='u+rwX,go+rX,go-w' | tar -xp -C "$work/source"
    mv "$work/source/packaging/debian" "$work/source/debian"
    git -C "$PROJECT" describe --always --dirty --abbrev=40 --exclude='*' >"$work/source/debian/commit"
    touch -d "@$(changelog_date)" "$work/source/debian/commit"
    long_step "building the packages" in_package_root "$work" sh -ec \
        'cd source; DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" dpkg-buildpackage "$@" --build=full --no-check-builddeps --no-sign' sh ${ARCH:+--host-arch=$ARCH}
    in_package_root "$work" python3 source/packaging/sbom.py . "$(changelog_date)" >"$work/gst-vartml.spdx.json"
    rm -rf "$work/source"
    rm -rf "$out"
    mv "$work" "$out"
}

test_packages() {
    say "lintian:"
    in_package_root "$PACKAGES_OUT" sh -ec 'lintian --allow-root --fail-on error,warning --info --tag-display-limit 0 *.changes' ||
        die "package: lintian is not content"
    [ -n "$ARCH" ] || interfaces compare # the descriptions are of one architecture
    build_again
    try_packages
}

# What the libraries in out/packages have for applications, beside what they had in the last release (packaging/abi) or in its place.
interfaces() { # compare, describe
    local work=$PACKAGES_OUT/interfaces
    compgen -G "$PACKAGES_OUT/lib*.deb" >/dev/null || die "package: out/packages has no packages to describe; run ./dev package first"
    rm -rf "$work"
    mkdir -p "$work" "$PROJECT/packaging/abi" # which is not there before the first release
    cp -r "$PROJECT/packaging/abi" "$PROJECT/packaging/abi.py" "$work/"
    in_package_root "$PACKAGES_OUT" bash -ec 'cd interfaces
        for file in ../lib*.deb; do dpkg-deb -x "$file" root; done
        python3 abi.py '"$1"' abi root/usr/lib/debug root/usr/lib/*/lib*.so.?' ||
        die "package: 'abi:' above says what is the matter with the interface of a library"
    [ "$1" != describe ] || { rm -f "$PROJECT"/packaging/abi/*.abi.xz; cp "$work"/abi/*.abi.xz "$PROJECT/packaging/abi/"; }
    rm -rf "$work"
}

# The same bytes, or what is released is not what was reviewed.
build_again() {
    local again=$PACKAGES_OUT.again file
    build_packages "$again"
    for file in "$again"/*.deb "$again"/*.dsc "$again"/*.tar.xz "$again"/*.spdx.json; do
        cmp "$file" "$PACKAGES_OUT/${file##*/}" || die "package: two builds differ; both are kept, $again is the second"
    done
    rm -rf "$again"
    say "two builds: equal bytes"
}

# Runs a command of the host in a namespace where the kernel runs programs for ARCH, as root in it, with all users.
emulated() {
    [ -n "$ARCH" ] || { "$@"; return; }
    local words=(sh -ec "$REGISTER_ARM64" sh "$ROOT" "$@") status=0 file
    if [ "$(id -u)" != 0 ]; then
        mmdebstrap --unshare-helper "${words[@]}"
        return
    fi
    # Its end of the pipe keeps the namespace, until it is closed or this shell ends.
    coproc unshare --user --mount cat
    for file in uid_map gid_map; do
        # Fails before the namespace is there.
        until echo 0 0 65536 2>/dev/null >"/proc/$COPROC_PID/$file"; do
            kill -0 "$COPROC_PID" 2>/dev/null || die "package: the kernel gives no namespace of users, which --arch needs"
            sleep 0.1
        done
    done
    nsenter --target "$COPROC_PID" --user --mount --setuid 0 --setgid 0 "${words[@]}" || status=$?
    exec {COPROC[1]}>&-
    wait "$COPROC_PID" || true
    return $status
}

# Runs mmdebstrap for a root that has the packages in /try; what apt gets is kept for the next time.
new_root() { # format, file, options of mmdebstrap...
    local format=$1 file=$2 kept=$CACHE/archives mode=root sources
    shift 2
    [ -z "$ARCH" ] && [ "$(id -u)" = 0 ] || mode=unshare # root of a namespace has no other way to mount what a root needs
    mapfile -t sources < <(root_sources)
    mkdir -p "$kept"
    SOURCE_DATE_EPOCH=$(changelog_date) emulated mmdebstrap --quiet --mode=$mode --variant=apt --format="$format" \
        ${ARCH:+--architectures=$ARCH --skip=check/qemu} \
        --aptopt='Acquire::Check-Valid-Until "false"' --dpkgopt=force-unsafe-io --skip=download/empty,essential/unlink \
        --setup-hook='mkdir -p "$1/var/cache/apt/archives"' \
        --setup-hook="sync-in $(printf %q "$kept") /var/cache/apt/archives" \
        --customize-hook='mkdir "$1/try"' --customize-hook="sync-in $(printf %q "$PACKAGES_OUT") /try" \
        "$@" --customize-hook="sync-out /var/cache/apt/archives $(printf %q "$kept")" \
        --customize-hook='test ! -e "$1/try/failed" && rm -r "$1/try"' \
        $SUITE "$file" "${sources[@]}"
}

# Everything that is done in it is in try.sh.
try_packages() {
    cp "$PROJECT/packaging/try.sh" "$PROJECT/README.md" "$PROJECT/pipelines/models/qrfinder/qrfinder.onnx" "$PACKAGES_OUT/"
    local status=0
    new_root null /dev/null --customize-hook='chroot "$1" bash /try/try.sh || touch "$1/try/failed"' || status=1
    rm "$PACKAGES_OUT/try.sh" "$PACKAGES_OUT/README.md" "$PACKAGES_OUT/qrfinder.onnx"
    [ $status = 0 ] || die "package: the test in a new root failed; the last line of 'package test' says where"
}

build_image() {
    local version architecture name
    version=$(sed -n '1s/.*(\(.*\)).*/\1/p' "$PROJECT/packaging/debian/changelog")
    architecture=${ARCH:-$(dpkg --print-architecture 2>/dev/null || in_package_root "$PACKAGES_OUT" dpkg --print-architecture)}
    name=gst-vartml_${version}_$architecture.oci.tar
    new_root tar "$PACKAGES_OUT/root.tar" --include=$IMAGE_INCLUDES \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --customize-hook="chroot \"\$1\" sh -ec 'cd /try; mkdir /work
            DEBIAN_FRONTEND=noninteractive apt-get -qq --no-install-recommends install $(printf './%s_*.deb ' "${IMAGE_PACKAGES[@]}")'"
    cp "$PROJECT/packaging/oci.py" "$PACKAGES_OUT/"
    in_package_root "$PACKAGES_OUT" python3 oci.py root.tar "$name" "gst-vartml:$version" "$architecture" "$(changelog_date)"
    rm "$PACKAGES_OUT/root.tar" "$PACKAGES_OUT/oci.py"
}

# Unpacked by a program that is not ours, then run as a container does, as a user that the image does not know.
try_image() {
    local work=$PACKAGES_OUT/image line settings=()
    rm -rf "$work"
    mkdir -p "$work/layout" "$work/own"
    tar -x -C "$work/layout" -f "$PACKAGES_OUT"/*.oci.tar
    in_package_root "$work" sh -ec 'umoci unpack --rootless --image "layout:$(umoci ls --layout layout)" bundle
        python3 -c "import json; print(*json.load(open(\"bundle/config.json\"))[\"process\"][\"env\"], sep=\"\n\")"' >"$work/settings" ||
        die "package: umoci does not unpack the image"
    while IFS= read -r line; do
        case $line in *=*) settings+=("$line") ;; esac
    done <"$work/settings"
    chmod 777 "$work/own"
    emulated bwrap --ro-bind "$work/bundle/rootfs" / --proc /proc --dev /dev --tmpfs /tmp --bind "$work/own" /work --chdir /work \
        --unshare-user --uid 1234 --gid 1234 --unshare-pid --unshare-net --die-with-parent -- env -i "${settings[@]}" sh -ec '
            vartml-demo --seconds 1 --out out
            model=/usr/share/vartml/models/qrfinder.onnx
            vartml detect $model out/scene.mp4 --frames 5 -o found.mp4
            gst-launch-1.0 -q filesrc location=out/scene.mp4 ! decodebin ! videoconvert ! vartmlinfer model=$model ! \
                vartmldecode ! vartmloverlay ! videoconvert ! jpegenc ! multifilesink location=%d.jpg max-files=3
            ls -s found.mp4 *.jpg' || die "package: the image does not run"
    rm -rf "$work"
    say "image test: passed"
}
