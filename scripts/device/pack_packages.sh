#!/bin/sh
# Packs the headers and libraries of Debian's packages that strait is built with, for a machine where they cannot be installed:
# a newer Debian or Ubuntu, with g++, CMake, ninja and a Python that has torch.
#
#   scripts/device/pack_packages.sh FILE.tar.xz   about 20 MB
#
# There, with S the folder that it is unpacked in:
#
#   export CMAKE_PREFIX_PATH=$S/usr PKG_CONFIG_SYSROOT_DIR=$S PKG_CONFIG_PATH=$S/usr/lib/x86_64-linux-gnu/pkgconfig
#   export CPATH=$S/usr/include:$S/usr/include/x86_64-linux-gnu LIBRARY_PATH=$S/usr/lib/x86_64-linux-gnu
#   export LD_LIBRARY_PATH=$LIBRARY_PATH PATH=$PATH:$S/usr/bin
#   scripts/device/tests.sh FOLDER -DSTRAIT_CHART_LIBRARY=$S/usr/share/javascript/chart.js/chart.min.js -DSTRAIT_BROWSER=/bin/false
set -eu

file=$(realpath "${1:?usage: scripts/device/pack_packages.sh FILE.tar.xz}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/packages" "$work/root"

wanted="pkgconf libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libfmt-dev libxxhash-dev libhwy-dev libcurl4-openssl-dev
  libssl-dev libasio-dev libarchive-dev libpcre2-dev libutf8proc-dev libpng-dev libturbojpeg0-dev libjs-chart.js libgtest-dev libgmock-dev librapidcheck-dev"
# What they depend on, and that in turn, without what such a machine has and without headers that only theirs need.
packages=""
while [ -n "$wanted" ]; do
  next=""
  for package in $wanted; do
    case " $packages " in *" $package "*) continue ;; esac
    packages="$packages $package"
    next="$next $(apt-cache depends --important --no-pre-depends "$package" | sed -n 's/^ *|*Depends: \([a-z0-9][^: ]*\)$/\1/p' | grep -Ev \
      '^(libc6|libc6-dev|libc-dev|libgcc-s1|libstdc|libcrypt1|debconf|dpkg|python3|libboost|.*-doc|lib(krb5|ldap2|nghttp2|psl|rtmp|ssh2-1|idn2|brotli|zstd|xml2|acl1|attr1|gnutls28|ext2fs|bz2|lz4|lzma|nettle)-dev)' || true)"
  done
  wanted=$next
done
# shellcheck disable=SC2086  # a list of names
(cd "$work/packages" && apt-get download -qq $packages)
for package in "$work/packages"/*.deb; do dpkg-deb -x "$package" "$work/root"; done
if [ -d "$work/root/lib" ]; then
  cp -a "$work/root/lib/." "$work/root/usr/lib/"
  rm -r "$work/root/lib"
fi
cd "$work/root"
rm -rf etc usr/share/doc usr/share/man usr/share/locale usr/share/lintian usr/src
# Shared libraries serve but for those that have none.
find usr/lib -name '*.a' ! -name 'libgtest*' ! -name 'libgmock*' ! -name 'librapidcheck*' -delete
tar -cJf "$file" .
