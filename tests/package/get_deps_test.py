# SPDX-License-Identifier: Apache-2.0
"""tools/get-deps.sh on older and newer systems: its requests to apt, and ggml's compiler. Small programs stand in for
the system."""

import os
import pathlib
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
HEAD = "#!/bin/bash\n"

# Boost packages in apt by release, as in Debian and Ubuntu.
BOOST = {
    "debian-12": {"libboost-dev": "1.74.0.3", "libboost1.74-dev": "1.74.0+ds1-21", "libboost1.81-dev": "1.81.0-5+deb12u1"},
    "debian-13": {"libboost-dev": "1.83.0.2+b2", "libboost1.83-dev": "1.83.0-4.2", "libboost1.88-dev": "1.88.0-1.1"},
    "ubuntu-24.04": {"libboost-dev": "1.83.0.1ubuntu2", "libboost1.74-dev": "1.74.0+ds1-23", "libboost1.83-dev": "1.83.0-2.1"},
}


def compiler(version):
    return (
        f'case $1 in -dumpversion) echo {version} ;; --version) echo "c++ (Debian) {version}.0"; '
        'echo "Copyright (C) 2022 Free Software Foundation, Inc." ;; esac\n'
    )


@pytest.fixture
def system(tmp_path):
    """Runs get-deps.sh with only the `installed` Boost packages; returns the process and the requested packages."""

    def run(*arguments, release="debian-13", installed=None):
        tools, asked = tmp_path / "tools", tmp_path / "asked"
        tools.mkdir()
        known = "\n".join(f"{name} {version}" for name, version in BOOST[release].items())
        boost = "\n".join(f"ii {version} {name}" for name, version in (installed or {}).items())
        programs = {
            "dpkg-query": f"if [[ $* = *boost* ]]; then echo '{boost}'; else echo 'ii  all'; fi\n",
            "apt-cache": f"""known='{known}'
case $1 in
  policy) echo "$2:"; awk -v p="$2" '$1 == p {{ print "  Candidate: " $2 }}' <<<"$known" ;;
  search) cut -d' ' -f1 <<<"$known" | grep -E "$3" | sed 's/$/ - headers/' ;;
esac
""",
            "apt-get": f'if [[ $* = *install* ]]; then echo "${{@: -1}}" >>{asked}; fi\n',
            "id": "echo 0\n",
        }
        for name, text in programs.items():
            (tools / name).write_text(HEAD + text)
            (tools / name).chmod(0o755)
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(tmp_path)}
        done = subprocess.run([SOURCE / "tools/get-deps.sh", *arguments], capture_output=True, text=True, env=environment, check=False)
        return done, asked.read_text().split() if asked.exists() else []

    return run


@pytest.mark.parametrize(
    ("release", "package"), [("debian-12", "libboost1.81-dev"), ("debian-13", "libboost-dev"), ("ubuntu-24.04", "libboost-dev")]
)
def test_boost_is_what_the_system_has(system, release, package):
    done, asked = system("packages", release=release)
    assert (done.returncode, asked) == (0, [package]), done.stderr


@pytest.mark.parametrize("installed", [{"libboost1.81-dev": "1.81.0-5"}, {"libboost1.74-dev": "1.74.0+ds1-21", "libboost1.83-dev": "1.83.0-4.2"}])
def test_boost_that_is_new_enough_is_not_replaced(system, installed):
    done, asked = system("packages", installed=installed)
    assert (done.returncode, asked, done.stderr) == (0, [], "")


def test_boost_that_is_too_old_is_not_enough(system):
    _, asked = system("packages", release="debian-12", installed={"libboost-dev": "1.74.0.3", "libboost1.74-dev": "1.74.0+ds1-21"})
    assert asked == ["libboost1.81-dev"]


def choice(tmp_path, version, *, clang):
    """The compiler that builds ggml on a machine with AMX, and its options."""
    (tmp_path / "c++").write_text(HEAD + compiler(version))
    if clang:
        (tmp_path / "clang++-16").write_text(HEAD + "echo clang version 16.0.6\n")
    for program in tmp_path.iterdir():
        program.chmod(0o755)
    script = f'here={SOURCE}/tools; . "$here/ggml/source.sh"; has_amx() {{ true; }}; choose_compiler; '
    script += 'echo "$cxx" $flags; if needs_other_compiler; then echo needs another; fi'
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)}
    # Hides this machine's own clang: `command -v` looks only into the folder of the test's programs.
    script = 'command() { if [ "$1" = -v ]; then [ -e "' + str(tmp_path) + '/$2" ]; else builtin command "$@"; fi; }; ' + script
    return subprocess.run(["bash", "-euc", script], capture_output=True, text=True, env=environment, check=True).stdout.splitlines()


WITH_AMX = "-mamx-tile -mamx-int8 -mamx-bf16"


@pytest.mark.parametrize("clang", [False, True])
def test_gcc_that_compiles_amx_right_builds_it_and_needs_no_other(tmp_path, clang):
    assert choice(tmp_path, 14, clang=clang) == [f"c++ {WITH_AMX}"]


def test_gcc_that_does_not_gives_way_to_clang_or_leaves_amx_out(tmp_path):
    assert choice(tmp_path, 12, clang=False) == ["c++ -mno-amx-tile -mno-amx-int8 -mno-amx-bf16", "needs another"]
    assert choice(tmp_path, 12, clang=True) == [f"clang++-16 {WITH_AMX}"]


# The libraries of GPUs are built when they are asked for; both requests end before anything is fetched.
@pytest.mark.parametrize(
    ("programs", "sentence"),
    [({}, "there is no nvcc in PATH"), ({"nvcc": "true\n", "nvidia-smi": "exit 9\n"}, "name the architectures")],
)
def test_a_library_for_cuda_needs_nvcc_and_architectures(tmp_path, programs, sentence):
    for name, text in programs.items():
        (tmp_path / name).write_text(HEAD + text)
        (tmp_path / name).chmod(0o755)
    text = (SOURCE / "tools/get-deps.sh").read_text()
    begin, end = text.index("# Compute capabilities"), text.index("# build_backend")
    script = f'say() {{ echo "$*" >&2; }}\nwanted=cuda\n{text[begin:end]}choose_backend_options\n'
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["bash", "-uc", script], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, sentence in done.stderr) == (1, True), done.stderr
