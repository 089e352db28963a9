#!/bin/sh
# Cutaway @VERSION@: installs it for the person who runs this file. Nobody needs to be root, and nothing is downloaded.
set -eu
payload_lines=@LINES@
payload_sha256=@SHA256@
needed_kib=@KIB@
machine=@MACHINE@

say() { printf '%s\n' "$*"; }
fail() {
    say "$*" >&2
    exit 1
}

target="$HOME/.local/opt/cutaway"
case "${1:-}" in
'') ;;
--target)
    [ -n "${2:-}" ] || fail "--target needs a folder."
    target=$2
    ;;
*)
    say "usage: sh $(basename -- "$0") [--target FOLDER]"
    say "Installs Cutaway @VERSION@ into $target, with a menu entry. uninstall.sh in that folder removes it."
    [ "$1" = --help ] && exit 0
    exit 2
    ;;
esac
case "$target" in /*) ;; *) target=$(pwd)/$target ;; esac
data=${XDG_DATA_HOME:-$HOME/.local/share}

[ "$(uname -m)" = "$machine" ] || fail "This Cutaway is for $machine, and this computer is $(uname -m)."
for command in tail tar xz sha256sum; do
    command -v "$command" >/dev/null || fail "The command $command is missing. Install it and repeat."
done
if [ -e "$target" ] && [ ! -x "$target/bin/cutaway" ]; then
    fail "$target holds something else. Choose another folder with --target, or move it away."
fi
[ "$target" != "$data/cutaway" ] || fail "$target is where chats and models lie. Choose another folder with --target."
existing=$(dirname -- "$target")
while [ ! -d "$existing" ]; do existing=$(dirname -- "$existing"); done
free_kib=$(df -Pk "$existing" | awk 'NR == 2 { print $4 }')
[ "$free_kib" -gt "$needed_kib" ] || fail "$((needed_kib / 1024)) MB are needed in $existing, and $((free_kib / 1024)) MB are free."
[ "$(tail -n +$((payload_lines + 1)) "$0" | sha256sum | cut -d ' ' -f 1)" = "$payload_sha256" ] ||
    fail "The file is damaged: download it again. Nothing was installed."

# Unpacked beside its place and renamed: there is never half a program.
new="$target.new"
trap 'rm -rf "$new"' EXIT
rm -rf "$new"
mkdir -p "$new"
tail -n +$((payload_lines + 1)) "$0" | xz -dc | tar -x --no-same-owner -C "$new"
if [ -e "$target" ]; then
    rm -rf "$target.old"
    mv "$target" "$target.old"
fi
mv "$new/usr/lib/cutaway" "$target"
rm -rf "$target.old"

mkdir -p "$data" "$HOME/.local/bin"
for folder in applications icons mime metainfo man; do
    [ ! -d "$new/usr/share/$folder" ] || cp -R "$new/usr/share/$folder" "$data/"
done
quoted=$(printf '%s' "$target/bin/cutaway" | sed -e 's/[\\"`$]/\\\\&/g' -e 's/%/%%/g')
program="\"$quoted\"" awk '/^Exec=/ { print "Exec=" ENVIRON["program"] " %F"; next } { print }' \
    "$new/usr/share/applications/cutaway.desktop" >"$data/applications/cutaway.desktop"
ln -sfn "$target/bin/cutaway" "$HOME/.local/bin/cutaway"
! command -v update-mime-database >/dev/null || update-mime-database "$data/mime" || true
! command -v update-desktop-database >/dev/null || update-desktop-database "$data/applications" || true

say "Cutaway @VERSION@ was installed in $target."
if "$target/bin/cutaway" --help >/dev/null; then
    say "Start it from the menu, or with $HOME/.local/bin/cutaway. Remove it with: sh \"$target/uninstall.sh\""
else
    fail "It does not start on this system; its own words are above."
fi
exit 0
