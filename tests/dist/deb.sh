#!/usr/bin/env bash
# The Debian package: it can be made, installed into an empty root, run there, and removed without a trace; its service is
# one that systemd takes.
source "$(dirname "$0")/../support/dist.bash"
build=$(dirname "$paceline")
for tool in cpack dpkg-deb dpkg-shlibdeps; do
    command -v $tool >/dev/null || { echo "skipped: no $tool" && exit 77; }
done
expect 0 cmake --build "$build" --target installables
expect 0 cpack --config "$build/CPackConfig.cmake" -B "$work/packages"
package=$(ls packages/paceline_*.deb) || fail "no package: $(cat out)"
dpkg-deb -f "$package" Depends | grep -q 'libmicrohttpd.*libssl\|libssl.*libmicrohttpd' || fail "it depends on: $(dpkg-deb -f "$package" Depends)"

# A root with a list of packages of its own; its dependencies are this machine's.
mkdir -p root/var/lib/dpkg/{info,updates} && touch root/var/lib/dpkg/{status,available}
dpkg=(dpkg --root="$work/root" --force-depends --force-not-root --log=/dev/null)
expect 0 "${dpkg[@]}" --install "$package"
expect 0 root/usr/bin/paceline --version
[ "$(cat out)" = "$("$paceline" --version)" ] || fail "another version: $(cat out)"
for file in share/man/man1/paceline.1 share/bash-completion/completions/paceline share/doc/paceline/copyright lib/systemd/system/paceline-serve.service; do
    [ -s "root/usr/$file" ] || fail "no $file: $(dpkg-deb -c "$package")"
done
if command -v systemd-analyze >/dev/null; then
    sed "s|^ExecStart=paceline|ExecStart=$paceline|" root/usr/lib/systemd/system/paceline-serve.service >paceline-serve.service
    expect 0 systemd-analyze verify --man=no ./paceline-serve.service
    [ ! -s err ] || fail "systemd says: $(cat err)"
    sed -n 's/^ExecStart=paceline \(.*\)/\1/p' "$root/deploy/paceline-serve.service" | grep -q '^serve --store' || fail "another command"
fi
expect 0 "${dpkg[@]}" --remove paceline
[ -z "$(find root -path root/var -prune -o -type f -print)" ] || fail "left behind: $(find root -type f)"
