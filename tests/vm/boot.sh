#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Boots this root's kernel in QEMU, without KVM, and runs the job in it; prints the job's output, ends with its status.
#
# usage: boot.sh SECONDS GUEST_PATH...
# /guest/root is what the guest sees as its root, /guest/0, /guest/1 … as GUEST_PATHs, all of them read-only;
# /guest/share is /share there and writable: job.sh to run, then output.txt, status and console.txt (of the kernel).
set -euo pipefail
limit=$1
shift
share=/guest/share
here=$(dirname "${BASH_SOURCE[0]}")
kernel=$(ls /usr/lib/modules)
# Beside a screen and a graphics device without one: cameras of one memory, of one per plane, and of one, with a webcam
# as their input but for the third, which has HDMI and gives every size; nodes for capture alone.
cameras='n_devs=5 multiplanar=1,2,1,1,1 node_types=0x1,0x1,0x1,0x1,0x1 num_inputs=1,1,1,1,1 input_types=0,0,3,0,0'

make_initramfs() {
    local dir module command file options
    dir=$(mktemp -d)
    mkdir -p "$dir"/{bin,dev,modules,new,proc,root,run,sys}
    cp /bin/busybox "$dir/bin/"
    for command in cat insmod mkdir mount sh switch_root; do ln -s busybox "$dir/bin/$command"; done
    install -m 755 "$here/init" "$dir/init"
    [ -e "/usr/lib/modules/$kernel/modules.dep" ] || depmod "$kernel"
    for module in 9pnet_virtio 9p overlay vivid vgem cirrus veth; do
        options=
        [ $module != vivid ] || options=$cameras
        modprobe -S "$kernel" --show-depends $module | while read -r command file _; do
            [ "$command" = insmod ] && [ ! -e "$dir/modules/$(basename "${file%.xz}")" ] || continue
            xz -dc "$file" >"$dir/modules/$(basename "${file%.xz}")"
            case $file in
                */$module.ko*) echo "$(basename "${file%.xz}") $options" ;;
                *) basename "${file%.xz}" ;;
            esac
        done
    done >"$dir/modules.list"
    (cd "$dir" && find . | cpio --quiet -o -H newc) >/run/initramfs
    rm -rf "$dir"
}

folders=()
add_folder() { # path, tag, further options
    folders+=(-virtfs "local,path=$1,mount_tag=$2,security_model=none,multidevs=remap$3")
}

rm -f "$share"/{status,console.txt}
: >"$share/output.txt"
: >"$share/mounts"
add_folder /guest/root root ,readonly=on
add_folder "$share" share ''
number=0
for path in "$@"; do
    echo "folder$number $path" >>"$share/mounts"
    add_folder "/guest/$number" "folder$number" ,readonly=on
    number=$((number + 1))
done
make_initramfs
# Without no_timer_check the kernel of a busy machine takes its timer for broken, and never comes up.
timeout -k 5 "$limit" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 2048 -nodefaults -display none -device cirrus-vga -no-reboot \
    -serial "file:$share/console.txt" -kernel "/boot/vmlinuz-$kernel" -initrd /run/initramfs \
    -append 'console=ttyS0 loglevel=4 panic=-1 random.trust_cpu=on mitigations=off no_timer_check' "${folders[@]}" </dev/null &
qemu=$!
tail -n +1 -s 0.2 -f --pid=$qemu "$share/output.txt" &
ended=0
wait $qemu || ended=$?
wait || true
[ ! -e "$share/status" ] || exit "$(cat "$share/status")"
[ ! -e "$share/console.txt" ] || tail -n 20 "$share/console.txt" >&2
if [ $ended = 124 ]; then
    echo "vm-test: the guest was ended after $limit s; VARTML_VM_SECONDS gives it more" >&2
else
    echo "vm-test: qemu-system-x86_64 ended with $ended before the job did; its console is above" >&2
fi
exit 1
