#!/usr/bin/env python3
"""Makes what a release consists of: archives of the program, npm packages, Python wheels.

    packaging/dist.py version                       the version, as Cargo.toml has it
    packaging/dist.py archive TARGET [PROGRAM]      an archive of the program that was built for a target
    packaging/dist.py npm                           npm packages of all archives, and the one that picks
    packaging/dist.py wheel                         a wheel of each archive

Everything is written to the folder dist, or another one with --dist. Names, versions and texts are those of crates/cli/Cargo.toml.
"""

import argparse
import base64
import hashlib
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = "teamster"

# Each target of a release: its name in npm (platform and processor, as Node calls them) and the tags of its wheel.
# What is linked to glibc runs where it was built, so its wheel has a tag that PyPI does not take.
TARGETS = {
    "aarch64-apple-darwin": ("darwin-arm64", "macosx_11_0_arm64"),
    "x86_64-apple-darwin": ("darwin-x64", "macosx_10_12_x86_64"),
    "aarch64-unknown-linux-musl": ("linux-arm64", "manylinux_2_17_aarch64.musllinux_1_1_aarch64"),
    "x86_64-unknown-linux-musl": ("linux-x64", "manylinux_2_17_x86_64.musllinux_1_1_x86_64"),
    "aarch64-unknown-linux-gnu": ("linux-arm64", "linux_aarch64"),
    "x86_64-unknown-linux-gnu": ("linux-x64", "linux_x86_64"),
}

SHELLS = {"bash": "teamster.bash", "fish": "teamster.fish", "zsh": "_teamster"}

# Of every file in a package, so that the same program gives the same bytes.
DATE = (1980, 1, 1, 0, 0, 0)


def package():
    """The package `teamster-cli`, as cargo reads it."""
    command = ["cargo", "metadata", "--no-deps", "--locked", "--format-version", "1"]
    found = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    return next(it for it in found["packages"] if it["name"] == "teamster-cli")


def archive(dist, target, program):
    """Program, licences, manual pages and completions, in a folder that is named like the archive."""
    program = pathlib.Path(program or ROOT / "target" / target / "dist" / PROGRAM)
    name = f"{PROGRAM}-{package()['version']}-{target}"
    with tempfile.TemporaryDirectory() as temp:
        folder = pathlib.Path(temp) / name
        folder.mkdir()
        shutil.copy2(program, folder / PROGRAM)
        for file in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"]:
            shutil.copy(ROOT / file, folder)
        subprocess.run([folder / PROGRAM, "man", folder / "man"], check=True)
        (folder / "completions").mkdir()
        for shell, file in SHELLS.items():
            script = subprocess.run(
                [folder / PROGRAM, "completions", shell], check=True, stdout=subprocess.PIPE
            )
            (folder / "completions" / file).write_bytes(script.stdout)
        dist.mkdir(parents=True, exist_ok=True)
        path = dist / f"{name}.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            tar.add(folder, name, filter=owned_by_nobody)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_name(path.name + ".sha256").write_text(f"{digest}  {path.name}\n")
    return path


def owned_by_nobody(member):
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def archives(dist, version):
    """Target and program of each archive there is."""
    found = {}
    for target in TARGETS:
        name = f"{PROGRAM}-{version}-{target}"
        path = dist / f"{name}.tar.gz"
        if path.exists():
            with tarfile.open(path) as tar:
                found[target] = tar.extractfile(f"{name}/{PROGRAM}").read()
    if not found:
        sys.exit(f"error: no archives in {dist}: run `packaging/dist.py archive TARGET` first")
    return found


def npm(dist):
    """A package for each platform, and one that depends on all of them and runs the right one."""
    about = package()
    version = about["version"]
    launcher = (ROOT / "packaging/npm/teamster.js").read_text()
    scope = launcher.split("const SCOPE = '")[1].split("'")[0]
    common = {
        "version": version,
        "description": about["description"],
        "license": about["license"],
        "repository": {"type": "git", "url": f"git+{about['repository']}.git"},
    }
    made = []
    platforms = {}
    for target, program in archives(dist, version).items():
        platform = TARGETS[target][0]
        if platform in platforms:
            sys.exit(f"error: two archives for {platform}: remove one of them from {dist}")
        name = f"{scope}/{platform}"
        platforms[platform] = name
        system, processor = platform.split("-")
        manifest = {
            "name": name,
            **common,
            "description": f"The program {PROGRAM} for {platform}",
            "os": [system],
            "cpu": [processor],
            "files": ["bin", "LICENSE-*"],
        }
        made.append(pack(dist, manifest, {f"bin/{PROGRAM}": (program, 0o755)}))
    manifest = {
        # The name without a scope belongs to another project.
        "name": f"{scope}/{PROGRAM}",
        **common,
        "keywords": about["keywords"],
        "bin": {PROGRAM: f"bin/{PROGRAM}.js"},
        "files": ["bin", "LICENSE-*"],
        "engines": {"node": ">=18"},
        "optionalDependencies": {name: version for name in platforms.values()},
    }
    readme = (ROOT / "crates/cli/README.md").read_bytes()
    files = {f"bin/{PROGRAM}.js": (launcher.encode(), 0o755), "README.md": (readme, 0o644)}
    made.append(pack(dist, manifest, files))
    return made


def pack(dist, manifest, files):
    """Has npm make a package of these files."""
    out = dist / "npm"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temp:
        folder = pathlib.Path(temp)
        (folder / "package.json").write_text(json.dumps(manifest, indent=2) + "\n")
        for name in ["LICENSE-APACHE", "LICENSE-MIT"]:
            shutil.copy(ROOT / name, folder)
        for name, (content, mode) in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(mode)
        command = ["npm", "pack", "--silent", "--pack-destination", out]
        made = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return out / made.stdout.strip().splitlines()[-1]


def wheels(dist):
    """A wheel for each archive: the program as a script, and nothing in Python."""
    about = package()
    version = about["version"]
    # Python writes pre-releases in its own way: 1.0.0-rc.1 is 1.0.0rc1.
    python_version = re.sub(
        r"-(alpha|beta|rc)\.?", lambda it: {"alpha": "a", "beta": "b", "rc": "rc"}[it[1]], version
    )
    return [
        wheel(dist, about, python_version, target, program)
        for target, program in archives(dist, version).items()
    ]


def wheel(dist, about, version, target, program):
    info = f"{PROGRAM}-{version}.dist-info"
    platforms = TARGETS[target][1]
    tags = [f"py3-none-{platform}" for platform in platforms.split(".")]
    metadata = [
        "Metadata-Version: 2.4",
        f"Name: {PROGRAM}",
        f"Version: {version}",
        f"Summary: {about['description']}",
        f"License-Expression: {about['license']}",
        "License-File: LICENSE-APACHE",
        "License-File: LICENSE-MIT",
        f"Keywords: {','.join(about['keywords'])}",
        f"Project-URL: Source, {about['repository']}",
        "Requires-Python: >=3.8",
        "Description-Content-Type: text/markdown",
        "",
        (ROOT / "crates/cli/README.md").read_text(),
    ]
    files = {
        f"{PROGRAM}-{version}.data/scripts/{PROGRAM}": (program, 0o755),
        f"{info}/METADATA": ("\n".join(metadata).encode(), 0o644),
        f"{info}/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: packaging/dist.py\nRoot-Is-Purelib: false\n".encode()
            + "".join(f"Tag: {tag}\n" for tag in tags).encode(),
            0o644,
        ),
    }
    for name in ["LICENSE-APACHE", "LICENSE-MIT"]:
        files[f"{info}/licenses/{name}"] = ((ROOT / name).read_bytes(), 0o644)
    record = io.StringIO()
    for name, (content, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.write(f"{name},sha256={digest},{len(content)}\n")
    record.write(f"{info}/RECORD,,\n")
    files[f"{info}/RECORD"] = (record.getvalue().encode(), 0o644)
    out = dist / "pypi"
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{PROGRAM}-{version}-py3-none-{platforms}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, (content, mode) in files.items():
            entry = zipfile.ZipInfo(name, DATE)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, content)
    return path


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dist", type=pathlib.Path, default=ROOT / "dist", help="default: dist")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("version")
    of_archive = commands.add_parser("archive")
    of_archive.add_argument("target", choices=TARGETS)
    of_archive.add_argument("program", nargs="?", help="default: target/TARGET/dist/teamster")
    commands.add_parser("npm")
    commands.add_parser("wheel")
    args = parser.parse_args()
    dist = args.dist.resolve()
    if args.command == "version":
        print(package()["version"])
        return
    if args.command == "archive":
        made = [archive(dist, args.target, args.program)]
    else:
        made = npm(dist) if args.command == "npm" else wheels(dist)
    for path in made:
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
