#!/bin/sh
# Installs what of Debian's packages the interop tests talk to and the machine lacks; runs before `npm test`. Where it may
# not install, it says what is missing: the tests that need it then fail and say so.
#
# Nothing that it installs is started, or enabled to start at boot: packages of servers do both by default.
set -eu
missing=
for package in nginx chromium prometheus wget curl python3 openssl bsdutils; do
  dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
  echo "The tests talk to programs of these Debian packages, install their like:$missing" >&2
  exit 0
fi
if [ "$(id -u)" -eq 0 ]; then
  as_root=
elif sudo -n true 2>/dev/null; then
  as_root='sudo -n'
else
  echo "The tests need Debian packages. As root: apt-get install --no-install-recommends$missing" >&2
  exit 0
fi
echo "installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive

# invoke-rc.d(8) asks this program before it starts a service: 101 forbids it.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
  $as_root chmod 755 "$policy"
  trap '$as_root rm -f "$policy"' EXIT
fi
enabled() {
  find /etc/systemd/system -path '*.wants/*.service' -exec basename {} .service \; 2>/dev/null | sort -u
}
before=$(enabled)
# Without expansion in quotes: several words each.
$as_root apt-get update -qq
$as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null

for service in $(enabled); do
  printf '%s\n' "$before" | grep -qxF "$service" && continue
  # Takes the links of systemd away, and those in /etc/rc?.d.
  $as_root update-rc.d "$service" disable
done
