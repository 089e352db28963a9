#!/bin/sh
# Removes the Cutaway that lies in this folder. Chats, models and settings stay, unless --delete-my-data is given.
set -eu
program=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
data=${XDG_DATA_HOME:-$HOME/.local/share}
if [ ! -x "$program/bin/cutaway" ] || [ ! -d "$program/app_packages" ]; then
    echo "There is no Cutaway in $program. Nothing was removed." >&2
    exit 1
fi
case "${1:-}" in
'' | --delete-my-data) ;;
*)
    echo "usage: uninstall.sh [--delete-my-data]" >&2
    exit 2
    ;;
esac

if [ "$(readlink "$HOME/.local/bin/cutaway" || true)" = "$program/bin/cutaway" ]; then
    rm -f "$HOME/.local/bin/cutaway"
fi
rm -f "$data/applications/cutaway.desktop" "$data/mime/packages/cutaway.xml" \
    "$data/metainfo/cutaway.metainfo.xml" "$data/man/man1/cutaway.1.gz"
rm -f "$data"/icons/hicolor/*/apps/cutaway.png "$data"/icons/hicolor/scalable/apps/cutaway.svg
# What was made from these is made again; where ours was the only one, it goes.
if command -v update-mime-database >/dev/null && [ -d "$data/mime/packages" ]; then
    update-mime-database "$data/mime" || true
    if [ -z "$(ls -A "$data/mime/packages")" ]; then
        for name in XMLnamespaces aliases generic-icons globs globs2 icons magic mime.cache subclasses treemagic types version; do
            rm -f "$data/mime/$name"
        done
    fi
fi
if command -v update-desktop-database >/dev/null && [ -d "$data/applications" ]; then
    update-desktop-database "$data/applications" || true
    [ "$(ls -A "$data/applications")" = mimeinfo.cache ] && rm -f "$data/applications/mimeinfo.cache"
fi
find "$data/applications" "$data/icons" "$data/mime" "$data/metainfo" "$data/man" -depth -type d -empty -delete \
    2>/dev/null || true
cd "$HOME"
rm -rf "$program"
rmdir "$(dirname -- "$program")" "$HOME/.local/bin" 2>/dev/null || true
if [ "${1:-}" = --delete-my-data ]; then
    rm -rf "$data/cutaway" "${XDG_CONFIG_HOME:-$HOME/.config}/cutaway" "${XDG_CACHE_HOME:-$HOME/.cache}/cutaway" \
        "${XDG_STATE_HOME:-$HOME/.local/state}/cutaway"
    echo "Cutaway was removed, with its chats, models and settings."
else
    echo "Cutaway was removed. Chats and models stay in $data/cutaway."
fi
