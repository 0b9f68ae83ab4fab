# What the scripts beside it share: sourced, not run.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
PATH=$root/node_modules/.bin:$PATH # Node.js 24
die() { echo "$0: $*" >&2; exit 1; }
# What the environment names wins: a trial publishes to a registry on loopback.
given_registry=${REGISTRY:-} given_organisation=${ORGANISATION:-}
. "$here/registry.env"
REGISTRY=${given_registry:-$REGISTRY} ORGANISATION=${given_organisation:-$ORGANISATION}
VERSION=$(sed -nE 's/^  "version": "([^"]+)",$/\1/p' "$root/package.json")
OUT=${OUT:-$root/dist/release}
BIN=${BIN:-${XDG_CACHE_HOME:-$HOME/.cache}/zonewise-plane/bin} # where test/plane/build puts Helm; cosign is in PATH
# The time of the commit, in everything that is packed: the same commit gives the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)}
COMMIT=$(git -C "$root" rev-parse HEAD)
IMAGE=$REGISTRY/$ORGANISATION/zonewise
CHARTS=$REGISTRY/$ORGANISATION/charts
mkdir -p "$OUT"

# In the runners' images for amd64; elsewhere Debian's.
need_buildah() { command -v buildah >/dev/null || { sudo apt-get -q update && sudo apt-get -qy install --no-install-recommends buildah; } }

need_registry() { [ -n "$REGISTRY" ] && [ -n "$ORGANISATION" ] || die 'REGISTRY and ORGANISATION are empty: fill in infra/release/registry.env'; }

# digest NAME: the digest that a step before has written.
digest() { cat "$OUT/$1.digest"; }
