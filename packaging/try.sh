#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# try.sh KIND: installs the package of KIND (deb, tar.gz, wheel, Containerfile) from dist/ on a bare system, and asks its
# server for an answer. tools/try-root.sh runs this in a fresh root with a model in /srv. The client is bash, so that no
# other package is needed.
set -euo pipefail
kind=$1
export WINNOW_MODEL=/srv/model.gguf DEBIAN_FRONTEND=noninteractive

fail() { echo "$kind: $*" >&2; exit 1; }
# Shows a command's output only if it fails.
quiet() { "$@" >/tmp/log 2>&1 || { cat /tmp/log >&2; fail "$*"; }; }

# ask METHOD PATH BODY: prints the server's reply.
ask() {
  exec 3<>/dev/tcp/127.0.0.1/8080 || return 1
  printf '%s %s HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s' "$1" "$2" "${#3}" "$3" >&3
  cat <&3
  exec 3<&-
}

# answers COMMAND…: starts a server with this command, and checks that a chat gets an answer.
answers() {
  local server reply
  "$@" 2>/tmp/server.log &
  server=$!
  until reply=$(ask GET /health '' 2>/dev/null) && [[ $reply == *" 200 "* ]]; do
    kill -0 $server 2>/dev/null || { cat /tmp/server.log >&2; fail "the server has ended"; }
    sleep 0.2
  done
  reply=$(ask POST /v1/chat/completions '{"messages": [{"role": "user", "content": "Who wrote War and Peace?"}], "max_tokens": 12}')
  kill $server
  wait $server || fail "the server ended with $?"
  grep -qE '"content": ?"[^"]' <<<"$reply" || fail "the server said: $reply"
  echo "$kind: $(grep -oE '"content": ?"[^"]*"' <<<"$reply")"
}

for compiler in cc c++ gcc g++ clang cmake; do
  if command -v $compiler >/dev/null; then fail "$compiler is here, so that this would not show what packages need"; fi
done
(cd dist && sha256sum --check --quiet SHA256SUMS)

case $kind in
  deb)
    quiet apt-get update
    quiet apt-get install -y --no-install-recommends ./dist/*.deb
    for file in bin/winnow lib/libwinnow.so include/winnow/session.h lib/systemd/system/winnow.service share/bash-completion/completions/winnow \
      share/zsh/site-functions/_winnow share/fish/vendor_completions.d/winnow.fish share/doc/winnow/copyright; do
      [ -f "/usr/$file" ] || fail "/usr/$file is missing"
    done
    [ "$(stat -c %a /etc/default/winnow)" = 600 ] || fail "/etc/default/winnow may be read by others"
    answers winnow serve
    quiet apt-get purge -y winnow
    if find /usr /etc /var/lib -name '*winnow*' -not -path '/var/lib/dpkg/*' | grep .; then fail "these are left after a purge"; fi
    ;;
  tar.gz)
    tar xzf dist/*.tar.gz -C /opt
    answers /opt/winnow-*/bin/winnow serve
    ;;
  wheel)
    quiet apt-get update
    quiet apt-get install -y --no-install-recommends python3-venv
    python3 -m venv /opt/venv
    quiet /opt/venv/bin/pip install dist/*.whl
    /opt/venv/bin/python -c 'import winnow; print(winnow.Session(winnow.Model.load("/srv/model.gguf")).read("Who?", ["full"]))'
    answers /opt/venv/bin/winnow serve
    ;;
  Containerfile)
    cp dist/*.deb /tmp
    sed -n '/^RUN /,/[^\\]$/{s/^RUN //;p}' dist/Containerfile >/tmp/run.sh
    quiet bash -euo pipefail /tmp/run.sh
    answers setpriv --reuid winnow --regid winnow --clear-groups winnow serve --host 0.0.0.0
    ;;
  *) fail "there is no such kind: it is deb, tar.gz, wheel or Containerfile" ;;
esac
